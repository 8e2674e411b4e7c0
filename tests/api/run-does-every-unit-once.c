/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whatever the size, minimum chunk, alignment and thread count: every unit is
 * done exactly once, and the result's numbers add up.
 */
#include "ktest.h"

#include <pthread.h>

#include "marks.h"

#define NR_CALLERS 4
#define MAX_RANGES 40

static struct marks marks;

static void check_result(const struct ktask_result *result, size_t units)
{
	uint64_t node_units = 0, node_chunks = 0;

	assert_int_equal(result->error, 0);
	assert_int_equal(result->units, units);
	assert_true(result->threads >= 1);
	assert_true(result->chunks >= result->threads);
	for (unsigned i = 0; i < result->nr_nodes; i++) {
		node_units += result->nodes[i].units;
		node_chunks += result->nodes[i].chunks;
	}
	assert_int_equal(node_units, units);
	assert_int_equal(node_chunks, result->chunks);
}

static void any_job_is_done_once(void **state)
{
	uint64_t random = ktest_seed();

	for (int round = 0; round < 300; round++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		size_t nr = 1 + ktest_random_below(&random, 60000);
		DEFINE_KTASK_CTL(ctl, marks_chunk, &marks,
				 1 + ktest_random_below(&random, 5000));

		marks_reset(&marks, nr);
		ktask_ctl_set_align(&ctl,
				    1ull << ktest_random_below(&random, 13));
		ktask_ctl_set_max_threads(
			&ctl, (unsigned)ktest_random_below(&random, 5));
		ktask_ctl_set_undo_func(&ctl, marks_undo);
		ktask_ctl_set_result(&ctl, &result);
		assert_int_equal(ktask_run(marks.done, nr, &ctl), 0);
		marks_check_complete(&marks);
		check_result(&result, nr);
	}
}

/* More ranges than a run has room for, on nodes that there may not be. */
static void ranges_of_any_nodes_are_done_once(void **state)
{
	uint64_t random = ktest_seed();

	for (int round = 0; round < 200; round++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		struct ktask_node nodes[MAX_RANGES];
		size_t nr_nodes = 1 + ktest_random_below(&random, MAX_RANGES);
		size_t units = 0;
		DEFINE_KTASK_CTL(ctl, marks_chunk, &marks, 1);

		for (size_t i = 0; i < nr_nodes; i++) {
			nodes[i].start = marks.done + units;
			nodes[i].task_size = ktest_random_below(&random, 2000);
			nodes[i].nid = (int)ktest_random_below(&random, 6) - 1;
			units += nodes[i].task_size;
		}
		marks_reset(&marks, units);
		ktask_ctl_set_result(&ctl, &result);
		assert_int_equal(ktask_run_numa(nodes, nr_nodes, &ctl), 0);
		marks_check_complete(&marks);
		check_result(&result, units);
	}
}

static void *call_jobs(void *arg)
{
	struct marks *own = malloc(sizeof(*own));
	intptr_t bad = own == NULL;

	for (int round = 0; own && round < 100; round++) {
		DEFINE_KTASK_CTL(ctl, marks_chunk, own, 1);

		marks_reset(own, 3000);
		bad |= ktask_run(own->done, own->nr, &ctl) != 0;
		for (size_t i = 0; i < own->nr; i++)
			bad |= own->done[i] != 1;
	}
	free(own);
	return (void *)bad;
}

static void several_callers_do_not_disturb_each_other(void **state)
{
	pthread_t threads[NR_CALLERS];
	void *bad;

	for (int i = 0; i < NR_CALLERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, call_jobs, NULL), 0);
	for (int i = 0; i < NR_CALLERS; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
}

KTEST_MAIN(KTEST(any_job_is_done_once),
	   KTEST(ranges_of_any_nodes_are_done_once),
	   KTEST(several_callers_do_not_disturb_each_other))
