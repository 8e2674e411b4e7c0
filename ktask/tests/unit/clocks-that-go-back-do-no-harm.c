/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A clock that is read a little earlier on another CPU, or that jumps far
 * ahead, changes no decision for long: chunks stay what they were, every unit
 * is done, the count of threads and the use of a quota stay within bounds.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#include "core/quota.h"
#include "core/tune.h"

#define UNITS 200000
#define UNIT_NS 1000
#define HOUR_NS 3600000000000ull

static uint64_t chunks;
static int64_t jump_ns;
static uint64_t jump_at;

/* Once, in a chunk after the first hundred. */
static int jump_clock(struct work *work, uint64_t from, uint64_t to)
{
	if (++chunks == jump_at)
		port_now_ns = (uint64_t)((int64_t)port_now_ns + jump_ns);
	return 0;
}

/* Chunks that a job of many equal units is cut into. */
static uint64_t count_chunks(int64_t by_ns)
{
	static const uint64_t units[] = { UNITS };
	struct work work;

	port_now_ns = HOUR_NS;
	chunks = 0;
	jump_ns = by_ns;
	jump_at = 20;
	work_init(&work, 1, units);
	work.unit_ns = UNIT_NS;
	work.chunk = jump_clock;
	work.job.split.target_ns = 1000000;
	work_begin(&work, 1);
	kt_job_work(&work.job, &work.workers[0]);
	work_check_done(&work);
	work_free(&work);
	return chunks;
}

static void a_step_back_does_not_cut_the_job_up(void **state)
{
	uint64_t usual = count_chunks(0);

	assert_in_range(usual, 100, 300);
	/* More than the chunk took, so that it seems to have ended before it
	 * began. */
	assert_in_range(count_chunks(-2000000), usual / 2, usual * 2);
	assert_in_range(count_chunks(-(int64_t)HOUR_NS / 2), usual / 2,
			usual * 2);
}

/* One chunk that seems to take an hour is taken for an expensive one: minimum chunks
 * follow, until that is forgotten. */
static void an_hour_ahead_is_forgotten(void **state)
{
	uint64_t usual = count_chunks(0);

	assert_in_range(count_chunks(HOUR_NS), usual / 2, usual * 20);
}

/* ---- the number of threads ---- */

static void tune_stays_within_bounds(void **state)
{
	uint64_t random = ktest_seed();
	struct kt_tune tune;
	uint64_t now_ns = HOUR_NS, units = 0;

	kt_tune_begin(&tune, 16, UINT64_MAX, now_ns);
	for (int i = 0; i < 200000; i++) {
		unsigned threads;

		switch (ktest_random_below(&random, 8)) {
		case 0:
			now_ns -= ktest_random_below(&random, 100000);
			break;
		case 1:
			now_ns += ktest_random_below(&random, HOUR_NS);
			break;
		case 2:
			now_ns = ktest_random(&random);
			break;
		default:
			now_ns += ktest_random_below(&random, 20000000);
		}
		units += ktest_random_below(&random, 1 << 20);
		threads = kt_tune_step(&tune, now_ns, units);
		assert_in_range(threads, 1, 16);
	}
}

/* ---- quotas ---- */

static void quotas_stay_within_bounds(void **state)
{
	uint64_t random = ktest_seed();
	struct kt_quota quota = { .milli = 4000 };

	for (int i = 0; i < 200000; i++) {
		struct kt_quota_sample sample = {
			.now_ns = ktest_random(&random),
			.group_ns = ktest_random(&random),
			.own_ns = ktest_random(&random),
			.nr_throttled = ktest_random(&random),
			.throttled_ns = ktest_random(&random),
			.own_threads = (uint32_t)ktest_random(&random),
		};

		kt_quota_step(&quota, &sample);
		assert_in_range(kt_quota_threads(&quota), 1, 4);
		assert_in_range(kt_quota_most(&quota), 4, 4);
	}
}

/* Back and ahead by as much: after a second all threads are given again. */
static void a_quota_recovers(void **state)
{
	struct kt_quota quota = { .milli = 4000 };
	struct kt_quota_sample sample = { .now_ns = HOUR_NS, .own_threads = 4 };

	kt_quota_step(&quota, &sample);
	sample.now_ns -= HOUR_NS / 2;
	kt_quota_step(&quota, &sample);
	for (int i = 0; i < 100; i++) {
		sample.now_ns += 50000000;
		sample.own_ns += 200000000;
		sample.group_ns += 200000000;
		kt_quota_step(&quota, &sample);
	}
	assert_int_equal(kt_quota_threads(&quota), 4);
}

KTEST_MAIN(KTEST(a_step_back_does_not_cut_the_job_up),
	   KTEST(an_hour_ahead_is_forgotten), KTEST(tune_stays_within_bounds),
	   KTEST(quotas_stay_within_bounds), KTEST(a_quota_recovers))
