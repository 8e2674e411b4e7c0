/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A worker takes its own node's range first, then the nearest with work left,
 * of equally near ones the fullest; what it does elsewhere counts as remote.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#include "core/claim.h"

/* A line of nodes: each step is 5 further. */
static unsigned on_a_line(int a, int b)
{
	return 10 + 5 * (unsigned)abs(a - b);
}

static int use_line(void **state)
{
	port_distance = on_a_line;
	return 0;
}

/* Which ranges the worker visits, as digits in order. */
static uint64_t list_visits(struct work *work, struct kt_worker *worker)
{
	struct kt_chunk chunk;
	uint64_t order = 0;
	unsigned last = WORK_RANGES;

	while (kt_claim(&work->job, worker, &chunk)) {
		if (worker->range != last)
			order = order * 10 + worker->range;
		last = worker->range;
		worker->range_chunks++;
		worker->chunks++;
	}
	kt_claim_leave(&work->job, worker);
	return order;
}

static uint64_t visits_from(int node, const uint64_t *units,
			    const int *range_nodes, unsigned nr)
{
	struct work work;
	uint64_t order;

	work_init(&work, nr, units);
	for (unsigned i = 0; range_nodes && i < nr; i++)
		work.ranges[i].node = range_nodes[i];
	work_begin(&work, 1);
	kt_worker_begin(&work.workers[0], &work.job, node, 0);
	order = list_visits(&work, &work.workers[0]);
	work_free(&work);
	return order;
}

static void own_range_then_by_distance(void **state)
{
	static const uint64_t units[] = { 20, 20, 20, 20, 20 };

	assert_int_equal(visits_from(1, units, NULL, 4), 1023);
	assert_int_equal(visits_from(4, units, NULL, 5), 43210);
	assert_int_equal(visits_from(3, units, NULL, 4), 3210);
}

static void fullest_of_equally_near(void **state)
{
	static const uint64_t units[] = { 30, 10, 20, 40 };
	static const uint64_t more_left[] = { 10, 20, 10 };
	static const int same[] = { 7, 7, 7, 7 };
	static const int around[] = { 1, 2, 3 };

	assert_int_equal(visits_from(0, units, same, 4), 3021);
	/* Home is node 2's; nodes 1 and 3 are equally near and full. */
	assert_int_equal(visits_from(2, more_left, around, 3), 102);
}

static void ranges_of_no_node_come_after_own(void **state)
{
	static const uint64_t units[] = { 10, 10, 10 };
	static const int nodes[] = { 0, KT_NO_NODE, 1 };
	static const int own[] = { 0, KT_NO_NODE, 0 };
	static const int nobodys[] = { KT_NO_NODE, 0, KT_NO_NODE };

	assert_int_equal(visits_from(0, units, nodes, 3), 12);
	assert_int_equal(visits_from(1, units, nodes, 3), 210);
	/* Who is nowhere prefers what belongs to nobody. */
	assert_int_equal(visits_from(KT_NO_NODE, units, nodes, 3), 102);
	/* The second of its own, too. */
	assert_int_equal(visits_from(0, units, own, 3), 21);
	assert_int_equal(visits_from(KT_NO_NODE, units, nobodys, 3), 21);
}

static void stolen_range_becomes_the_workers(void **state)
{
	static const uint64_t units[] = { 2, 50, 50 };
	struct kt_chunk chunk;
	struct work work;

	work_init(&work, 3, units);
	work_begin(&work, 3);
	for (unsigned i = 0; i < 4; i++)
		assert_true(kt_claim(&work.job, &work.workers[0], &chunk));
	assert_int_equal(work.workers[0].range, 1);
	assert_int_equal(work.ranges[1].next, 2);
	assert_int_equal(work.ranges[2].next, 0);
	work_free(&work);
}

static void chunks_elsewhere_are_remote(void **state)
{
	static const uint64_t units[] = { 5, 7, 9 };
	struct work work;

	work_init(&work, 3, units);
	work.ranges[1].node = KT_NO_NODE;
	work_begin(&work, 1);
	list_visits(&work, &work.workers[0]);
	assert_int_equal(work.ranges[0].chunks, 5);
	assert_int_equal(work.ranges[0].remote_chunks, 0);
	assert_int_equal(work.ranges[1].chunks, 7);
	assert_int_equal(work.ranges[1].remote_chunks, 0);
	assert_int_equal(work.ranges[2].chunks, 9);
	assert_int_equal(work.ranges[2].remote_chunks, 9);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(work.ranges[i].threads, 1);
	work_free(&work);
}

static void worker_from_nowhere_is_not_remote(void **state)
{
	static const uint64_t units[] = { 5 };
	struct work work;

	work_init(&work, 1, units);
	work_begin(&work, 1);
	work.workers[0].node = KT_NO_NODE;
	list_visits(&work, &work.workers[0]);
	assert_int_equal(work.ranges[0].chunks, 5);
	assert_int_equal(work.ranges[0].remote_chunks, 0);
	work_free(&work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(own_range_then_by_distance),
		KTEST(fullest_of_equally_near),
		KTEST(ranges_of_no_node_come_after_own),
		KTEST(stolen_range_becomes_the_workers),
		KTEST(chunks_elsewhere_are_remote),
		KTEST(worker_from_nowhere_is_not_remote),
	};

	return cmocka_run_group_tests(tests, use_line, NULL);
}
