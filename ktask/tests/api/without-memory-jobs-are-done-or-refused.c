/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Every allocation of the library fails once, in turn, and all from one on, in
 * a process that uses it for the first time and in one that knows it: a job is
 * done or refused with -ENOMEM before anything ran, and undo stays exact.
 */
#include "support/work.h"

#include "failalloc.h"

/* More helpers than a first job makes at once; the thread sanitizer's take long. */
#define MANY_CPUS (KTEST_TSAN ? 10 : 24)
#include "support/many_cpus.h"

#define NR_UNITS 1200
#define NR_RANGES 12
/* More than any of the calls makes; the library's first job has the most. */
#define NTH_MAX 100

enum way { RUN, RUN_NUMA, START, START_NUMA, NR_WAYS };

struct attempt {
	enum way way;
	bool fails; /* a chunk in the middle */
	bool warm; /* not the process's first job */
	bool from; /* this allocation and all later ones */
	unsigned nth;
};

static int use_a_little(struct work *work, size_t from, size_t to)
{
	const struct attempt *attempt = work->arg;

	burn_us(2);
	if (attempt->fails && from <= NR_UNITS / 2 && NR_UNITS / 2 < to)
		return -EIO;
	return 0;
}

static void arm_refusal(const struct attempt *attempt)
{
	if (attempt->from)
		failalloc_arm_from(attempt->nth, FAILALLOC_ALL);
	else
		failalloc_arm(attempt->nth);
}

static int start_and_wait(enum way way, const struct ktask_node *nodes,
			  const struct ktask_ctl *ctl)
{
	struct ktask_job *job = (struct ktask_job *)nodes;
	int error = way == START
			    ? ktask_start(&job, WORK_BASE, NR_UNITS, ctl)
			    : ktask_start_numa(&job, nodes, NR_RANGES, ctl);

	if (!error)
		return ktask_wait(job);
	ktest_check(!job);
	return error;
}

static int do_job(enum way way, const struct ktask_ctl *ctl)
{
	struct ktask_node nodes[NR_RANGES];
	size_t each = NR_UNITS / NR_RANGES;

	for (size_t i = 0; i < NR_RANGES; i++)
		nodes[i] = (struct ktask_node){ WORK_BASE + i * each, each,
						(int)i - 1 };
	if (way == RUN)
		return ktask_run(WORK_BASE, NR_UNITS, ctl);
	if (way == RUN_NUMA)
		return ktask_run_numa(nodes, NR_RANGES, ctl);
	return start_and_wait(way, nodes, ctl);
}

static void check_attempt(const struct attempt *attempt,
			  const struct work *work, int error, bool refused)
{
	if (error == -ENOMEM) {
		/* ktask_run() over one range needs none. */
		ktest_check(refused && attempt->way != RUN);
		ktest_check(!work->nr_chunks);
	} else {
		ktest_check(error == (attempt->fails ? -EIO : 0));
	}
	if (error)
		ktest_check(work_undone_exactly(work, NULL));
	else
		ktest_check(work_done_once(work));
}

/* Return: 77 when the @nth allocation was never reached. */
static int try_attempt(void *arg)
{
	const struct attempt *attempt = arg;
	struct work work = { .also = use_a_little, .arg = arg };
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_ctl ctl = work_ctl(&work, 1);
	unsigned refused;
	int error;

	if (attempt->warm && prio_may_lend() && may_help())
		ktest_check(!work_met());
	work_begin(&work, NR_UNITS);
	ktask_ctl_set_result(&ctl, &result);
	arm_refusal(attempt);
	error = do_job(attempt->way, &ctl);
	refused = failalloc_disarm();
	check_attempt(attempt, &work, error, refused);
	work_end(&work);
	/* And the next one works as if nothing had been. */
	work.arg = &(struct attempt){ .fails = false };
	work_begin(&work, NR_UNITS);
	ktest_check(!work_run(&work));
	ktest_check(work_done_once(&work));
	work_end(&work);
	return refused ? 0 : 77;
}

static void try_all(bool warm, bool from)
{
	for (int variant = 0; variant < 2 * NR_WAYS; variant++) {
		struct attempt attempt = { .way = (enum way)(variant / 2),
					   .fails = variant % 2,
					   .warm = warm,
					   .from = from };
		int status = 0;

		while (!status && attempt.nth++ < NTH_MAX)
			status = ktest_in_child(try_attempt, &attempt);
		assert_int_equal(status, 77 << 8);
		/* A first job allocates, one way or another. */
		assert_true(warm || attempt.nth > 1);
	}
}

static void a_first_job_lacks_one_allocation(void **state)
{
	try_all(false, false);
}

static void a_first_job_lacks_all_from_one_on(void **state)
{
	try_all(false, true);
}

static void a_later_job_lacks_one_allocation(void **state)
{
	try_all(true, false);
}

static void a_later_job_lacks_all_from_one_on(void **state)
{
	try_all(true, true);
}

/* A wrong range at the end, and no memory to look at all of them. */
static int refuse_before_running(void *arg)
{
	struct work work = { 0 };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	struct ktask_node nodes[NR_RANGES];
	int error;

	for (size_t i = 0; i < NR_RANGES; i++)
		nodes[i] = (struct ktask_node){ WORK_BASE + i * 10, 10, -1 };
	nodes[NR_RANGES - 1].task_size = SIZE_MAX;
	work_begin(&work, NR_UNITS);
	failalloc_arm_from(1, FAILALLOC_MEMORY);
	error = ktask_run_numa(nodes, NR_RANGES, &ctl);
	failalloc_disarm();
	ktest_check(error == -EINVAL || error == -ENOMEM);
	ktest_check(!work.nr_chunks);
	work_end(&work);
	return 0;
}

static void nothing_runs_before_all_ranges_are_seen(void **state)
{
	assert_int_equal(ktest_in_child(refuse_before_running, NULL), 0);
}

KTEST_MAIN(KTEST(a_first_job_lacks_one_allocation),
	   KTEST(a_first_job_lacks_all_from_one_on),
	   KTEST(a_later_job_lacks_one_allocation),
	   KTEST(a_later_job_lacks_all_from_one_on),
	   KTEST(nothing_runs_before_all_ranges_are_seen))
