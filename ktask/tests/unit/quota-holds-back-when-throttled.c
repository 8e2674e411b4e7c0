/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A quota that runs out takes one thread a look, down to the caller; each quiet
 * second gives one back.
 */
#include "ktest.h"

#include "core/quota.h"

#define MS 1000000ull

static struct kt_quota begin_quota(uint32_t milli, uint64_t throttled_ns)
{
	struct kt_quota quota = { .milli = milli };
	struct kt_quota_sample sample = {
		.now_ns = 5 * MS,
		.group_ns = KT_QUOTA_UNKNOWN,
		.nr_throttled = 40,
		.throttled_ns = throttled_ns,
		.own_threads = 1,
	};

	kt_quota_step(&quota, &sample);
	return quota;
}

static unsigned step_quota(struct kt_quota *quota, uint64_t ms,
			   unsigned periods, uint64_t lost_ms)
{
	struct kt_quota_sample sample = quota->last;

	sample.now_ns += ms * MS;
	sample.nr_throttled += periods;
	if (sample.throttled_ns != KT_QUOTA_UNKNOWN)
		sample.throttled_ns += lost_ms * MS;
	kt_quota_step(quota, &sample);
	return kt_quota_threads(quota);
}

static void one_thread_a_refresh(void **state)
{
	struct kt_quota quota = begin_quota(4000, 0);

	assert_int_equal(kt_quota_threads(&quota), 4);
	assert_int_equal(step_quota(&quota, 50, 1, 100), 3);
	assert_int_equal(step_quota(&quota, 50, 5, 100), 2);
	assert_int_equal(step_quota(&quota, 50, 1, 100), 1);
	assert_int_equal(step_quota(&quota, 50, 1, 100), 1);
	assert_int_equal(quota.held, 3);
}

static void a_quiet_second_gives_one_back(void **state)
{
	struct kt_quota quota = begin_quota(4000, 0);
	int i;

	step_quota(&quota, 50, 1, 100);
	assert_int_equal(step_quota(&quota, 50, 1, 100), 2);
	for (i = 0; i < 19; i++)
		assert_int_equal(step_quota(&quota, 50, 0, 0), 2);
	assert_int_equal(step_quota(&quota, 50, 0, 0), 3);
	for (i = 0; i < 19; i++)
		assert_int_equal(step_quota(&quota, 50, 0, 0), 3);
	assert_int_equal(step_quota(&quota, 50, 0, 0), 4);
	assert_int_equal(step_quota(&quota, 50, 0, 0), 4);
}

static void throttling_starts_the_second_anew(void **state)
{
	struct kt_quota quota = begin_quota(2000, 0);
	int i;

	assert_int_equal(step_quota(&quota, 50, 1, 50), 1);
	for (i = 0; i < 15; i++)
		step_quota(&quota, 50, 0, 0);
	step_quota(&quota, 50, 1, 50);
	for (i = 0; i < 19; i++)
		assert_int_equal(step_quota(&quota, 50, 0, 0), 1);
	assert_int_equal(step_quota(&quota, 50, 0, 0), 2);
}

/* A job that uses all of its quota is cut off for a moment now and then. */
static void a_little_is_borne(void **state)
{
	struct kt_quota quota = begin_quota(4000, 0);
	int i;

	for (i = 0; i < 100; i++)
		assert_int_equal(step_quota(&quota, 50, 1, 6), 4);
	assert_int_equal(step_quota(&quota, 50, 1, 7), 3);
}

static void without_the_lost_time_each_period_counts(void **state)
{
	struct kt_quota quota = begin_quota(4000, KT_QUOTA_UNKNOWN);

	assert_int_equal(step_quota(&quota, 50, 0, 0), 4);
	assert_int_equal(step_quota(&quota, 50, 1, 0), 3);
}

static void what_came_before_the_job_does_not_count(void **state)
{
	struct kt_quota quota = begin_quota(4000, 0);

	assert_int_equal(step_quota(&quota, 60000, 600, 60000), 4);
	assert_int_equal(step_quota(&quota, 50, 1, 50), 3);
	step_quota(&quota, 50, 1, 50);
	step_quota(&quota, 50, 1, 50);
	assert_int_equal(step_quota(&quota, 60000, 0, 0), 4);
}

KTEST_MAIN(KTEST(one_thread_a_refresh), KTEST(a_quiet_second_gives_one_back),
	   KTEST(throttling_starts_the_second_anew), KTEST(a_little_is_borne),
	   KTEST(without_the_lost_time_each_period_counts),
	   KTEST(what_came_before_the_job_does_not_count))
