/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Workers of one node begin on different ranges of that node, and never on
 * one without work while another has some.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#include "core/claim.h"

static void workers_of_a_node_are_dealt_over_its_ranges(void **state)
{
	static const uint64_t units[] = { 10, 10, 10, 10, 10 };
	struct work work;

	work_init(&work, 5, units);
	for (unsigned i = 0; i < 5; i++)
		work.ranges[i].node = (int)(i % 2);
	work_begin(&work, 0);
	for (unsigned i = 0; i < 12; i++) {
		assert_int_equal(kt_claim_home(&work.job, 0, i), i % 3 * 2);
		assert_int_equal(kt_claim_home(&work.job, 1, i), i % 2 * 2 + 1);
	}
	work_free(&work);
}

static void ranges_of_no_node_are_home_to_workers_of_none(void **state)
{
	static const uint64_t units[] = { 10, 10, 10 };
	struct work work;

	work_init(&work, 3, units);
	work.ranges[0].node = KT_NO_NODE;
	work.ranges[2].node = KT_NO_NODE;
	work_begin(&work, 0);
	assert_int_equal(kt_claim_home(&work.job, KT_NO_NODE, 0), 0);
	assert_int_equal(kt_claim_home(&work.job, KT_NO_NODE, 1), 2);
	assert_int_equal(kt_claim_home(&work.job, KT_NO_NODE, 2), 0);
	work_free(&work);
}

static void used_up_ranges_are_nobodys_home(void **state)
{
	static const uint64_t units[] = { 10, 0, 10, 10 };
	struct work work;

	work_init(&work, 4, units);
	for (unsigned i = 0; i < 4; i++)
		work.ranges[i].node = i == 3;
	work_begin(&work, 0);
	work.ranges[0].next = 10;
	assert_false(kt_job_idle(&work.job));
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(kt_claim_home(&work.job, 0, i), 2);
	work.ranges[2].next = 10;
	assert_int_equal(kt_claim_home(&work.job, 0, 0), 3);
	work.ranges[3].next = 10;
	assert_true(kt_job_idle(&work.job));
	assert_true(kt_claim_home(&work.job, 0, 0) < 4);
	work_free(&work);
}

static void home_of_a_node_without_range_is_the_nearest(void **state)
{
	static const uint64_t units[] = { 10, 30, 20 };
	struct work work;

	work_init(&work, 3, units);
	work_begin(&work, 0);
	assert_int_equal(kt_claim_home(&work.job, 9, 0), 1);
	assert_int_equal(kt_claim_home(&work.job, 9, 1), 1);
	work_free(&work);
}

KTEST_MAIN(KTEST(workers_of_a_node_are_dealt_over_its_ranges),
	   KTEST(ranges_of_no_node_are_home_to_workers_of_none),
	   KTEST(used_up_ranges_are_nobodys_home),
	   KTEST(home_of_a_node_without_range_is_the_nearest))
