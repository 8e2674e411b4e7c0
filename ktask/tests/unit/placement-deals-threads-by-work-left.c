/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads are dealt to the ranges in proportion to the work that is left, in
 * turn where that is equal, and none to a range that is used up.
 */
#include "ktest.h"
#include "support/work.h"

#include "core/placement.h"

/* The ranges that @nr threads are dealt, as digits in order. */
static uint64_t deal_threads(struct work *work, unsigned nr)
{
	uint64_t order = 0;

	while (nr--)
		order = order * 10 + kt_placement_deal(&work->job, NULL);
	return order;
}

static struct work work;

static void begin_job(unsigned nr, const uint64_t *units)
{
	work_init(&work, nr, units);
	work_begin(&work, 1);
}

static void equal_ranges_take_turns(void **state)
{
	static const uint64_t units[] = { 100, 100, 100 };

	begin_job(3, units);
	assert_int_equal(deal_threads(&work, 7), 120120);
	work_free(&work);
}

static void more_work_gets_more_threads(void **state)
{
	static const uint64_t units[] = { 100000, 300000 };
	uint32_t dealt[2];

	begin_job(2, units);
	deal_threads(&work, 40);
	dealt[0] = work.ranges[0].dealt;
	dealt[1] = work.ranges[1].dealt;
	assert_int_equal(dealt[0], 10);
	assert_int_equal(dealt[1], 30);
	work_free(&work);
}

static void what_is_used_up_gets_none(void **state)
{
	static const uint64_t units[] = { 50, 0, 50, 50 };

	begin_job(4, units);
	work.ranges[0].next = 50;
	assert_int_equal(deal_threads(&work, 5), 23232);
	/* Even one unit is work, however many threads the others have. */
	work.ranges[2].next = 49;
	work.ranges[3].next = 50;
	assert_int_equal(deal_threads(&work, 3), 222);
	work_free(&work);
}

static void who_left_frees_capacity(void **state)
{
	static const uint64_t units[] = { 100, 100 };

	begin_job(2, units);
	assert_int_equal(deal_threads(&work, 3), 10);
	/* Ranges 0, 1, 0. */
	kt_placement_undeal(&work.job, 1);
	assert_int_equal(deal_threads(&work, 2), 11);
	work_free(&work);
}

static int full_node;

static bool has_capacity(const struct kt_job *job, int node)
{
	return node != full_node;
}

static void
a_node_without_capacity_gets_none_while_others_have_work(void **state)
{
	static const uint64_t units[] = { 1000, 100, 100 };

	begin_job(3, units);
	for (int i = 0; i < 3; i++)
		work.ranges[i].node = i;
	full_node = 0;
	assert_int_equal(kt_placement_deal(&work.job, has_capacity), 1);
	assert_int_equal(kt_placement_deal(&work.job, has_capacity), 2);
	full_node = 1;
	assert_int_equal(kt_placement_deal(&work.job, has_capacity), 0);
	/* Nothing is left but there: rather to a node that is done. */
	work.ranges[0].next = 1000;
	work.ranges[2].next = 100;
	work.ranges[0].dealt = 2;
	assert_int_equal(kt_placement_deal(&work.job, has_capacity), 2);
	assert_int_equal(kt_placement_deal(&work.job, has_capacity), 0);
	/* No node has capacity. */
	work.ranges[0].node = 1;
	work.ranges[2].node = 1;
	assert_int_equal(kt_placement_deal(&work.job, has_capacity), 1);
	assert_int_equal(work.ranges[1].dealt, 2);
	work_free(&work);
}

/* A range of no node says nothing about where there is capacity. */
static void a_range_of_no_node_has_no_capacity(void **state)
{
	static const uint64_t units[] = { 100, 100, 100 };

	begin_job(3, units);
	work.ranges[0].node = KT_NO_NODE;
	work.ranges[0].next = work.ranges[1].next = 100;
	work.ranges[1].node = 1;
	work.ranges[1].dealt = 5;
	work.ranges[2].node = full_node = 2;
	assert_int_equal(kt_placement_deal(&work.job, has_capacity), 1);
	work_free(&work);
}

static void nothing_left_and_no_range(void **state)
{
	static const uint64_t units[] = { 10, 10 };
	struct kt_job none = { .nr_ranges = 0 };

	begin_job(2, units);
	work.ranges[0].next = work.ranges[1].next = 10;
	assert_int_equal(kt_placement_deal(&work.job, NULL), 0);
	assert_int_equal(kt_placement_deal(&none, NULL), 0);
	work_free(&work);
}

static void huge_ranges_do_not_overflow(void **state)
{
	static const uint64_t units[] = { 10, 10 };

	begin_job(2, units);
	work.ranges[0].units = UINT64_MAX / 2;
	work.ranges[1].units = UINT64_MAX / 2;
	work.ranges[1].dealt = UINT32_MAX;
	assert_int_equal(deal_threads(&work, 3), 0);
	work_free(&work);
}

KTEST_MAIN(KTEST(equal_ranges_take_turns), KTEST(more_work_gets_more_threads),
	   KTEST(what_is_used_up_gets_none), KTEST(who_left_frees_capacity),
	   KTEST(a_node_without_capacity_gets_none_while_others_have_work),
	   KTEST(a_range_of_no_node_has_no_capacity),
	   KTEST(nothing_left_and_no_range), KTEST(huge_ranges_do_not_overflow))
