/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Several threads run jobs of all kinds at once, at random: each job does
 * every unit once, or fails and undoes exactly what it did.
 *
 * Two seconds; KTASK_TEST_SECONDS=N makes it N.
 */
#include "ktest.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <ktask/ktask.h>

#define NR_THREADS 6
#define MAX_UNITS 3000
#define MAX_RANGES 7
#define FAILURE (-77)
#define NEVER SIZE_MAX
#define PATIENCE_NS 60000000000ull

struct load {
	uint64_t random;
	size_t nr_units;
	int count[MAX_UNITS];
	size_t fail_at; /* the unit whose chunk fails; NEVER */
	size_t nest_at; /* the unit whose chunk runs a job; NEVER */
	unsigned spin; /* per unit */
	uint32_t nr_wrong; /* nested jobs that were not exact */
};

static struct {
	uint64_t end_ns;
	uint64_t seed;
	uint32_t nr_jobs, nr_failed, nr_cancelled, nr_late;
} soak;

static uint64_t pick_below(struct load *load, uint64_t bound)
{
	return ktest_random_below(&load->random, bound);
}

static void add_one(uint32_t *value)
{
	__atomic_add_fetch(value, 1, __ATOMIC_RELAXED);
}

static void count_units(int *counts, void *start, void *end, int by)
{
	for (uintptr_t i = (uintptr_t)start; i < (uintptr_t)end; i++)
		__atomic_add_fetch(&counts[i], by, __ATOMIC_RELAXED);
}

/* ---- chunks ---- */

#define NR_INNER 200

static int do_inner(void *start, void *end, void *arg)
{
	count_units(arg, start, end, 1);
	return 0;
}

static bool inner_is_exact(void)
{
	int counts[NR_INNER] = { 0 };
	DEFINE_KTASK_CTL(ctl, do_inner, counts, 3);

	if (ktask_run(NULL, NR_INNER, &ctl))
		return false;
	for (int i = 0; i < NR_INNER; i++)
		if (__atomic_load_n(&counts[i], __ATOMIC_RELAXED) != 1)
			return false;
	return true;
}

static int do_units(void *start, void *end, void *arg)
{
	struct load *load = arg;
	size_t from = (size_t)start, to = (size_t)end;

	for (volatile size_t i = 0; i < (to - from) * load->spin; i++)
		;
	if (load->nest_at >= from && load->nest_at < to && !inner_is_exact())
		add_one(&load->nr_wrong);
	if (load->fail_at >= from && load->fail_at < to) {
		ktask_fail_at((void *)load->fail_at);
		return FAILURE;
	}
	count_units(load->count, start, end, 1);
	return 0;
}

static void undo_units(void *start, void *end, void *arg)
{
	count_units(((struct load *)arg)->count, start, end, -1);
}

/* ---- what a job may look like ---- */

/* Once in @nr times a unit of the job. */
static size_t at_times(struct load *load, unsigned nr)
{
	return pick_below(load, nr) ? NEVER : pick_below(load, load->nr_units);
}

static void choose_job(struct load *load, struct ktask_ctl *ctl)
{
	load->nr_units = 1 + pick_below(load, MAX_UNITS);
	load->spin = (unsigned)pick_below(load, 3) * 100;
	load->fail_at = at_times(load, 8);
	load->nest_at = at_times(load, 4);
	load->nr_wrong = 0;
	memset(load->count, 0, sizeof(load->count));

	ktask_ctl_init(ctl, do_units, load, 1 + pick_below(load, 60));
	ktask_ctl_set_undo_func(ctl, undo_units);
	ktask_ctl_set_align(ctl, (size_t)1 << pick_below(load, 5));
	ktask_ctl_set_max_threads(ctl, (unsigned)pick_below(load, 5));
	ktask_ctl_set_chunk_us(ctl, (unsigned)pick_below(load, 200));
	if (!pick_below(load, 5))
		ktask_ctl_set_deadline(ctl, 1 + pick_below(load, 500000));
}

/* Cuts [0, nr_units) into ranges, some of them empty.  Return: how many. */
static size_t cut_ranges(struct load *load, struct ktask_node *nodes)
{
	size_t nr = 1 + pick_below(load, MAX_RANGES), from = 0;

	for (size_t i = 0; i < nr; i++) {
		size_t left = load->nr_units - from;
		size_t units = i + 1 < nr ? pick_below(load, left + 1) : left;

		nodes[i].start = (void *)from;
		nodes[i].task_size = units;
		nodes[i].nid = (int)pick_below(load, 4) - 1;
		from += units;
	}
	return nr;
}

static int finish_job(struct load *load, struct ktask_job *job, bool *cancelled)
{
	if (!pick_below(load, 2))
		usleep((useconds_t)pick_below(load, 300));
	*cancelled = !pick_below(load, 3);
	if (*cancelled)
		ktask_cancel(job);
	if (!pick_below(load, 2))
		ktask_poll(job, NULL);
	return ktask_wait(job);
}

static int run_job(struct load *load, struct ktask_ctl *ctl, bool *cancelled)
{
	struct ktask_node nodes[MAX_RANGES + 1];
	struct ktask_job *job;
	int error;

	switch (pick_below(load, 4)) {
	case 0:
		return ktask_run(NULL, load->nr_units, ctl);
	case 1:
		return ktask_run_numa(nodes, cut_ranges(load, nodes), ctl);
	case 2:
		error = ktask_start(&job, NULL, load->nr_units, ctl);
		break;
	default:
		error = ktask_start_numa(&job, nodes, cut_ranges(load, nodes),
					 ctl);
	}
	return error ? error : finish_job(load, job, cancelled);
}

/* ---- what must hold ---- */

static bool all_counts_are(const struct load *load, int value)
{
	for (size_t i = 0; i < load->nr_units; i++)
		if (__atomic_load_n(&load->count[i], __ATOMIC_RELAXED) != value)
			return false;
	return true;
}

static bool may_return(const struct load *load, const struct ktask_ctl *ctl,
		       bool cancelled, int error)
{
	switch (error) {
	case 0:
		return load->fail_at == NEVER;
	case FAILURE:
		add_one(&soak.nr_failed);
		return load->fail_at != NEVER;
	case -ECANCELED:
		add_one(&soak.nr_cancelled);
		return cancelled;
	case -ETIMEDOUT:
		add_one(&soak.nr_late);
		return ctl->deadline_ns;
	default:
		return false;
	}
}

static bool result_is_right(const struct load *load,
			    const struct ktask_result *result, int error)
{
	if (result->error != error || result->units > load->nr_units)
		return false;
	if (error == FAILURE && (result->fail_error != FAILURE ||
				 result->fail_pos != (void *)load->fail_at))
		return false;
	return error || result->units == load->nr_units;
}

static bool one_job(struct load *load)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	bool with_result, cancelled = false;
	struct ktask_ctl ctl;
	int error;

	choose_job(load, &ctl);
	with_result = pick_below(load, 2);
	if (with_result)
		ktask_ctl_set_result(&ctl, &result);
	error = run_job(load, &ctl, &cancelled);
	add_one(&soak.nr_jobs);
	return may_return(load, &ctl, cancelled, error) &&
	       all_counts_are(load, !error) && !load->nr_wrong &&
	       (!with_result || result_is_right(load, &result, error));
}

/* Longer, if until then no job has failed: there were hardly any. */
static bool goes_on(void)
{
	uint64_t now_ns = ktest_now_ns();

	return now_ns < soak.end_ns ||
	       (!__atomic_load_n(&soak.nr_failed, __ATOMIC_RELAXED) &&
		now_ns < soak.end_ns + PATIENCE_NS);
}

static void *run_jobs(void *arg)
{
	struct load *load = calloc(1, sizeof(*load));
	uintptr_t wrong = !load;

	if (load)
		load->random = soak.seed + (uintptr_t)arg * 1000003;
	while (!wrong && goes_on()) {
		wrong = !one_job(load);
		if (!pick_below(load, 100))
			ktask_trim();
	}
	free(load);
	return (void *)wrong;
}

static void jobs_of_all_kinds_at_once(void **state)
{
	const char *seconds = getenv("KTASK_TEST_SECONDS");
	pthread_t threads[NR_THREADS];
	uintptr_t nr_wrong = 0;
	void *wrong;

	soak.seed = ktest_seed();
	soak.end_ns = ktest_now_ns() +
		      strtoull(seconds ? seconds : "2", NULL, 0) * 1000000000u;
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, run_jobs, (void *)i),
			0);
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(threads[i], &wrong);
		nr_wrong += (uintptr_t)wrong;
	}
	printf("# %u jobs: %u failed, %u cancelled, %u late\n", soak.nr_jobs,
	       soak.nr_failed, soak.nr_cancelled, soak.nr_late);
	assert_int_equal(nr_wrong, 0);
	assert_true(soak.nr_failed && soak.nr_jobs > soak.nr_failed);
}

KTEST_MAIN(KTEST(jobs_of_all_kinds_at_once))
