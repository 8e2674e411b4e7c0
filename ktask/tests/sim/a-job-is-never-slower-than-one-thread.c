/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job beside any load takes at most 1.05 of what one thread takes, and one
 * chunk at that pace; in virtual time, with threads of nice -20, of nice 0 and
 * idle ones on every CPU.
 *
 * The caller sleeps once for each helper that it lends its priority to.  Then
 * it may miss a turn on its CPU, and so may the helper: what the scheduler
 * gives to others before is not the job's.  A job that begins while more threads
 * run than there are CPUs has no helper for TRIED_NS, and so no such turns.
 *
 * KTASK_TEST_SEED=N runs one of them, with a trace.
 */
#include "ktest.h"
#include "tests/sim/support/schedule.h"

#define SCHEDULES (KTEST_ASAN || KTEST_TSAN ? 200 : 5000)

#define TRIED_NS 200000000

static double sum_of_speedups;
static unsigned nr_overloaded;

static void check(uint64_t seed)
{
	struct schedule_time time;
	const char *why = schedule_time(seed, &time);
	double pace, bound_ns;

	if (why)
		fail_msg("seed %llu: %s", (unsigned long long)seed, why);
	if (time.overloaded && time.job_ns < TRIED_NS) {
		nr_overloaded++;
		time.turn_ns = 0;
		if (time.threads > 1)
			fail_msg("seed %llu: %u threads beside %u others on "
				 "%u CPUs",
				 (unsigned long long)seed, time.threads,
				 time.hogs, time.cpus);
	}
	pace = (double)time.plain_ns / (double)time.work_ns;
	bound_ns = 1.05 * (double)time.plain_ns + pace * (double)time.chunk_ns +
		   (1.0 + 2 * time.lent) * (double)time.turn_ns;
	if ((double)time.job_ns > bound_ns)
		fail_msg("seed %llu: %.3f ms, plain %.3f ms; a chunk %.3f ms, "
			 "a turn %.3f ms; %u threads, %u lent to, %u CPUs, "
			 "%u others",
			 (unsigned long long)seed, (double)time.job_ns / 1e6,
			 (double)time.plain_ns / 1e6,
			 pace * (double)time.chunk_ns / 1e6,
			 (double)time.turn_ns / 1e6, time.threads, time.lent,
			 time.cpus, time.hogs);
	sum_of_speedups += (double)time.plain_ns / (double)time.job_ns;
}

static void beside_any_load(void **state)
{
	if (!schedule_each(SCHEDULES, check))
		return;
	/* Helpers did help. */
	assert_true(sum_of_speedups > 1.5 * SCHEDULES);
	assert_true(nr_overloaded > SCHEDULES / 10);
}

KTEST_MAIN(KTEST(beside_any_load))
