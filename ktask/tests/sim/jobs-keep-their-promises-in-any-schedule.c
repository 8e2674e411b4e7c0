/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The engine runs jobs on simulated machines, one for each seed: threads are
 * preempted at any access to shared memory, helpers get no CPU, CPUs are
 * unplugged, processes fork, permits and clocks change.  Each unit is done
 * once, what succeeded of a job that fails is undone once, permits are given
 * back once and never exceeded, no item is lost, and nobody waits for a helper
 * that has not begun.  A job has its first error, ends at its deadline, reads its
 * limits again when they have changed, and tells its progress as often as it was asked.
 *
 * KTASK_TEST_SEED=N runs one schedule, with a trace.
 */
#include "ktest.h"
#include "tests/sim/support/schedule.h"

#define SCHEDULES (KTEST_ASAN || KTEST_TSAN ? 3000 : 100000)

static struct schedule_stats stats;

static void check_seed(uint64_t seed)
{
	const char *why = schedule_check(seed, &stats);

	if (why)
		fail_msg("seed %llu: %s", (unsigned long long)seed, why);
}

static void in_any_schedule(void **state)
{
	schedule_each(SCHEDULES, check_seed);
}

/* Found by longer runs. */
static void in_schedules_that_failed_once(void **state)
{
	static const uint64_t seeds[] = {
		270231, /* a helper that takes an item gets no CPU for its permit */
	};

	if (getenv("KTASK_TEST_SEED"))
		return;
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		check_seed(seeds[i]);
}

/* The schedules had what they are for. */
static void and_there_was_something_to_see(void **state)
{
	if (getenv("KTASK_TEST_SEED"))
		return;
	print_message("# %llu jobs, %llu of them failed, %llu nested, %llu "
		      "detached; %llu chunks, %llu by helpers; %llu points\n",
		      (unsigned long long)stats.jobs,
		      (unsigned long long)stats.failed,
		      (unsigned long long)stats.nested,
		      (unsigned long long)stats.detached,
		      (unsigned long long)stats.chunks,
		      (unsigned long long)stats.helper_chunks,
		      (unsigned long long)stats.points);
	assert_true(stats.jobs > SCHEDULES);
	assert_true(stats.helper_chunks > stats.chunks / 4);
	assert_true(stats.failed && stats.nested && stats.detached);
	assert_true(stats.forks && stats.orphans && stats.undone);
	assert_true(stats.lent && stats.cancelled && stats.compensating);
	assert_true(stats.unplugged && stats.permit_changes && stats.jumps);
	assert_true(stats.grown && stats.yielded && stats.starved);
	assert_true(stats.late && stats.reports && stats.of_children);
	assert_true(stats.ramps);
}

KTEST_MAIN(KTEST(in_any_schedule), KTEST(in_schedules_that_failed_once),
	   KTEST(and_there_was_something_to_see))
