/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs of random shape: every unit is done exactly once, no chunk is under the
 * minimum, edges inside a range are aligned; one caller or several at a time,
 * one range or many, on nodes that exist and nodes that do not.
 */
#include "support/work.h"

#define MANY_CPUS 10
#include "support/many_cpus.h"

#define NR_RANGES_MAX 40
#define NR_CALLERS 4
#define NR_JOBS (KTEST_TSAN || KTEST_ASAN ? 150 : 1500)

/* The shape of one job: ranges that ascend, with gaps. */
struct shape {
	struct ktask_node nodes[NR_RANGES_MAX];
	size_t nr_nodes;
	size_t min_chunk, align;
	bool iterated;
	uint32_t nr_crooked; /* chunks that break a rule */
};

static size_t from_position(void *position)
{
	return (size_t)((char *)position - WORK_BASE);
}

static const struct ktask_node *range_of(const struct shape *shape, size_t unit)
{
	for (size_t i = shape->nr_nodes; i-- > 0;)
		if (unit >= from_position(shape->nodes[i].start))
			return &shape->nodes[i];
	return NULL;
}

static int check_edges(struct work *work, size_t from, size_t to)
{
	struct shape *shape = work->arg;
	const struct ktask_node *range = range_of(shape, from);
	size_t start = from_position(range->start);
	size_t end = start + range->task_size;
	/* Alignment is of addresses; iterated positions have none. */
	size_t base = shape->iterated ? -start : (size_t)WORK_BASE;
	bool straight = from < to && to <= end;

	straight = straight && (to - from >= shape->min_chunk ||
				to - from == range->task_size);
	straight =
		straight && (from == start || !((base + from) % shape->align));
	straight = straight && (to == end || !((base + to) % shape->align));
	if (!straight)
		__atomic_add_fetch(&shape->nr_crooked, 1, __ATOMIC_RELAXED);
	return 0;
}

static size_t make_ranges(struct shape *shape, size_t nr, uint64_t *seed)
{
	static const int nids[] = { NUMA_NO_NODE, 0, 0, 1, 7, 1000000 };
	size_t most = ktest_random_below(seed, 3) ? 4000 : 60;
	size_t unit = 0;

	shape->nr_nodes = nr;
	for (size_t i = 0; i < nr; i++) {
		struct ktask_node *node = &shape->nodes[i];

		unit += ktest_random_below(seed, 100);
		node->start = WORK_BASE + unit;
		node->task_size = ktest_random_below(seed, most);
		node->nid = nids[ktest_random_below(seed, 6)];
		unit += node->task_size;
	}
	return unit;
}

static struct ktask_ctl random_ctl(struct work *work, struct shape *shape,
				   uint64_t *seed)
{
	static const unsigned chunk_us[] = { 0, 1, 50, 1000000 };
	struct ktask_ctl ctl;

	shape->min_chunk = 1 + (ktest_random(seed) & 1023 & ktest_random(seed) &
				ktest_random(seed));
	shape->align = (size_t)1 << ktest_random_below(seed, 9);
	shape->iterated = !ktest_random_below(seed, 4);
	shape->nr_crooked = 0;
	ctl = work_ctl(work, shape->min_chunk);
	ctl.align = shape->align > 1 ? shape->align : 0;
	ctl.max_threads = (unsigned)ktest_random_below(seed, 12);
	ctl.chunk_us = chunk_us[ktest_random_below(seed, 4)];
	return ctl;
}

static void *advance_position(void *position, size_t size)
{
	return (char *)position + size;
}

/* Units of the gaps between ranges count as done, to be compared at once. */
static void fill_gaps(struct work *work, const struct shape *shape)
{
	for (size_t i = 0; i < work->nr_units; i++) {
		const struct ktask_node *range = range_of(shape, i);

		if (!range ||
		    i >= from_position(range->start) + range->task_size)
			work->done[i]++;
	}
}

static int run_started(const struct shape *shape, const struct ktask_ctl *ctl)
{
	struct ktask_job *job;
	int error = ktask_start_numa(&job, shape->nodes, shape->nr_nodes, ctl);

	return error ? error : ktask_wait(job);
}

static int run_any(const struct shape *shape, const struct ktask_ctl *ctl,
		   uint64_t way)
{
	if (way % 4 == 0)
		return run_started(shape, ctl);
	if (shape->nr_nodes == 1 && way % 2)
		return ktask_run(shape->nodes[0].start,
				 shape->nodes[0].task_size, ctl);
	return ktask_run_numa(shape->nodes, shape->nr_nodes, ctl);
}

/* Return: NULL or what went wrong. */
static const char *one_job(uint64_t *seed, size_t nr_ranges)
{
	struct work work = { .also = check_edges };
	struct shape shape;
	struct ktask_ctl ctl;
	const char *wrong = NULL;
	int error;

	work.arg = &shape;
	work_begin(&work, make_ranges(&shape, nr_ranges, seed));
	ctl = random_ctl(&work, &shape, seed);
	if (shape.iterated)
		ktask_ctl_set_iter_func(&ctl, advance_position);
	error = run_any(&shape, &ctl, ktest_random(seed));
	fill_gaps(&work, &shape);
	if (error)
		wrong = "the job failed";
	else if (!work_done_once(&work))
		wrong = "a unit was not done once";
	else if (shape.nr_crooked)
		wrong = "a chunk is too small or not aligned";
	work_end(&work);
	return wrong;
}

static void one_caller_one_range(void **state)
{
	uint64_t seed = ktest_seed();

	for (int i = 0; i < NR_JOBS; i++)
		assert_ptr_equal(one_job(&seed, 1), NULL);
}

static void one_caller_many_ranges(void **state)
{
	uint64_t seed = ktest_seed() + 1;

	for (int i = 0; i < NR_JOBS; i++) {
		size_t nr = 1 + ktest_random_below(&seed, NR_RANGES_MAX);

		assert_ptr_equal(one_job(&seed, nr), NULL);
	}
}

static void *run_caller(void *arg)
{
	uint64_t seed = ktest_seed() + 2 + (uint64_t)(uintptr_t)arg;
	const char *wrong = NULL;

	for (int i = 0; i < NR_JOBS / 2 && !wrong; i++)
		wrong = one_job(&seed, 1 + ktest_random_below(&seed, 6));
	return (void *)wrong;
}

static void several_callers_at_once(void **state)
{
	pthread_t threads[NR_CALLERS];
	void *wrong;

	ktest_seed();
	for (uintptr_t i = 0; i < NR_CALLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_caller,
						(void *)i),
				 0);
	for (int i = 0; i < NR_CALLERS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_ptr_equal(wrong, NULL);
	}
}

/* So that the above was about several threads at all. */
static void helpers_take_part(void **state)
{
	need_sure_helper();
	assert_int_equal(work_met(), 0);
}

KTEST_MAIN(KTEST(one_caller_one_range), KTEST(one_caller_many_ranges),
	   KTEST(several_callers_at_once), KTEST(helpers_take_part))
