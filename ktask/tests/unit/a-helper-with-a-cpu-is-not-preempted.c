/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper that makes memory ahead stops where it had no CPU for long, and only there:
 * the clock by which it knows may go back a little.
 */
#include "ktest.h"

#include "ahead/idle_clock.h"

#define THEN 5000000000ull

static void long_waits_are_seen(void **state)
{
	assert_true(ahead_was_off_cpu(THEN, THEN + AHEAD_OFF_CPU_NS));
	assert_true(ahead_was_off_cpu(THEN, 2 * THEN));
	assert_true(ahead_was_off_cpu(0, AHEAD_OFF_CPU_NS));
}

static void short_ones_are_not(void **state)
{
	assert_false(ahead_was_off_cpu(THEN, THEN));
	assert_false(ahead_was_off_cpu(THEN, THEN + 1));
	assert_false(ahead_was_off_cpu(THEN, THEN + AHEAD_OFF_CPU_NS - 1));
}

static void a_clock_may_run_backwards(void **state)
{
	assert_false(ahead_was_off_cpu(THEN, THEN - 1));
	assert_false(ahead_was_off_cpu(THEN, THEN - AHEAD_OFF_CPU_NS));
	assert_false(ahead_was_off_cpu(1, 0));
}

/* As a helper that sleeps in a chunk. */
static void sleeping_is_seen(void **state)
{
	const struct timespec nap = { .tv_nsec = 2 * AHEAD_OFF_CPU_NS };
	uint64_t then_ns = ahead_idle_clock_ns();

	nanosleep(&nap, NULL);
	assert_true(ahead_was_off_cpu(then_ns, ahead_idle_clock_ns()));
}

KTEST_MAIN(KTEST(long_waits_are_seen), KTEST(short_ones_are_not),
	   KTEST(a_clock_may_run_backwards), KTEST(sleeping_is_seen))
