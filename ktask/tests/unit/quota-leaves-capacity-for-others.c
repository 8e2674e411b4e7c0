/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads are what the quota has capacity for beside what others in the group use;
 * the share of our own jobs is not held against them.
 */
#include "ktest.h"

#include "core/quota.h"

#define MS 1000000ull

static unsigned compute_most(uint64_t quota_us, uint64_t period_us)
{
	struct kt_quota quota = { .milli =
					  kt_quota_milli(quota_us, period_us) };

	return kt_quota_most(&quota);
}

static void quota_is_rounded_down(void **state)
{
	assert_int_equal(compute_most(50000, 100000), 1);
	assert_int_equal(compute_most(1000, 100000), 1);
	assert_int_equal(compute_most(0, 100000), 1);
	assert_int_equal(compute_most(100000, 100000), 1);
	assert_int_equal(compute_most(150000, 100000), 1);
	assert_int_equal(compute_most(200000, 100000), 2);
	assert_int_equal(compute_most(3200000, 100000), 32);
	assert_int_equal(compute_most(8000, 2000), 4);
}

static void an_eighth_of_a_cpu_costs_no_thread(void **state)
{
	assert_int_equal(compute_most(187500, 100000), 2);
	assert_int_equal(compute_most(187000, 100000), 1);
}

static void no_quota_overflows(void **state)
{
	assert_true(compute_most(UINT64_MAX, 1) > 1000000);
	assert_true(compute_most(UINT64_MAX, 100000) > 1000000);
	assert_int_equal(compute_most(1, UINT64_MAX), 1);
	assert_int_equal(kt_quota_milli(5, 0), UINT32_MAX);
}

/* One step of @ms in which these were used. */
static void step_quota(struct kt_quota *quota, uint64_t ms, uint64_t group_ms,
		       uint64_t own_ms, uint32_t threads)
{
	struct kt_quota_sample sample = quota->last;

	sample.now_ns += ms * MS;
	sample.group_ns += group_ms * MS;
	sample.own_ns += own_ms * MS;
	sample.own_threads = threads;
	sample.throttled_ns = KT_QUOTA_UNKNOWN;
	kt_quota_step(quota, &sample);
}

static struct kt_quota begin_quota(uint32_t milli)
{
	struct kt_quota quota = { .milli = milli };

	quota.last.now_ns = 77 * MS;
	step_quota(&quota, 0, 1000, 1000, 1);
	return quota;
}

static void nothing_known_is_nobody_else(void **state)
{
	struct kt_quota quota = begin_quota(4000);

	assert_int_equal(kt_quota_threads(&quota), 4);
}

static void others_take_capacity(void **state)
{
	struct kt_quota quota = begin_quota(4000);

	step_quota(&quota, 50, 150, 50, 1);
	assert_int_equal(quota.others_milli, 2000);
	assert_int_equal(kt_quota_threads(&quota), 2);
	assert_int_equal(kt_quota_most(&quota), 4);
}

static void own_job_takes_none(void **state)
{
	struct kt_quota quota = begin_quota(4000);

	step_quota(&quota, 50, 200, 200, 4);
	step_quota(&quota, 50, 200, 200, 4);
	assert_int_equal(kt_quota_threads(&quota), 4);
}

static void own_threads_outside_of_jobs_are_others(void **state)
{
	struct kt_quota quota = begin_quota(4000);

	step_quota(&quota, 50, 200, 200, 2);
	assert_int_equal(quota.others_milli, 2000);
	assert_int_equal(kt_quota_threads(&quota), 2);
}

/* A helper that came or left between two looks is not somebody else. */
static void more_threads_of_two_refreshes_count(void **state)
{
	struct kt_quota quota = begin_quota(4000);

	step_quota(&quota, 50, 200, 200, 4);
	step_quota(&quota, 50, 200, 200, 1);
	assert_int_equal(kt_quota_threads(&quota), 4);
}

static void too_many_others_leave_the_caller(void **state)
{
	struct kt_quota quota = begin_quota(2000);

	step_quota(&quota, 50, 5000, 50, 1);
	assert_int_equal(kt_quota_threads(&quota), 1);
}

static void capacity_comes_back_by_halves(void **state)
{
	struct kt_quota quota = begin_quota(8000);

	step_quota(&quota, 50, 450, 50, 1);
	assert_int_equal(kt_quota_threads(&quota), 1);
	step_quota(&quota, 50, 50, 50, 1);
	assert_int_equal(quota.others_milli, 4000);
	assert_int_equal(kt_quota_threads(&quota), 4);
	step_quota(&quota, 50, 50, 50, 1);
	assert_int_equal(kt_quota_threads(&quota), 6);
	/* Long ago is long gone. */
	step_quota(&quota, 50, 450, 50, 1);
	step_quota(&quota, 5000, 50, 50, 1);
	assert_int_equal(kt_quota_threads(&quota), 8);
}

static void counters_that_shrink_say_nothing(void **state)
{
	struct kt_quota quota = begin_quota(4000);
	struct kt_quota_sample sample = quota.last;

	sample.now_ns += 50 * MS;
	sample.group_ns = 0;
	sample.own_ns = 0;
	sample.throttled_ns = 0;
	kt_quota_step(&quota, &sample);
	assert_int_equal(kt_quota_threads(&quota), 4);
	sample.now_ns = 1;
	sample.group_ns = UINT64_MAX - 1;
	kt_quota_step(&quota, &sample);
	assert_int_equal(kt_quota_threads(&quota), 4);
}

static void unknown_use_is_nobody_else(void **state)
{
	struct kt_quota quota = begin_quota(4000);
	struct kt_quota_sample sample = quota.last;

	sample.now_ns += 50 * MS;
	sample.group_ns = KT_QUOTA_UNKNOWN;
	kt_quota_step(&quota, &sample);
	sample.now_ns += 50 * MS;
	sample.group_ns = 900000 * MS;
	kt_quota_step(&quota, &sample);
	assert_int_equal(kt_quota_threads(&quota), 4);
}

static void steps_too_short_to_measure_are_not_made(void **state)
{
	struct kt_quota quota = begin_quota(4000);

	step_quota(&quota, 5, 20, 5, 1);
	assert_int_equal(quota.others_milli, 0);
	assert_int_equal(quota.last.now_ns, 77 * MS);
}

KTEST_MAIN(KTEST(quota_is_rounded_down),
	   KTEST(an_eighth_of_a_cpu_costs_no_thread), KTEST(no_quota_overflows),
	   KTEST(nothing_known_is_nobody_else), KTEST(others_take_capacity),
	   KTEST(own_job_takes_none),
	   KTEST(own_threads_outside_of_jobs_are_others),
	   KTEST(more_threads_of_two_refreshes_count),
	   KTEST(too_many_others_leave_the_caller),
	   KTEST(capacity_comes_back_by_halves),
	   KTEST(counters_that_shrink_say_nothing),
	   KTEST(unknown_use_is_nobody_else),
	   KTEST(steps_too_short_to_measure_are_not_made))
