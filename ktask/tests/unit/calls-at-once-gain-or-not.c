/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Calls of a device by several threads are given up only where they take longer than one
 * thread would, and use more CPU time as well.
 */
#include "ktest.h"

#include "ops/calls_at_once.c"

#define MIB ((uint64_t)1 << 20)

/* Nanoseconds for each MiB. */
static struct calls_cost cost(uint64_t mib, uint64_t wall_ns, uint64_t cpu_ns)
{
	return (struct calls_cost){ mib * MIB, mib * wall_ns, mib * cpu_ns };
}

/* All together, for each MiB. */
static bool gain(uint64_t wall_ns, uint64_t cpu_ns, unsigned threads)
{
	struct calls_cost alone = cost(2, 1000, 900);
	struct calls_cost at_once = cost(8, wall_ns, cpu_ns);

	return calls_at_once_gain(&alone, &at_once, threads);
}

static void calls_that_take_less_together_gain(void **state)
{
	assert_true(gain(500, 900, 2));
	assert_true(gain(900, 1700, 2));
	assert_true(gain(900, 14000, 16));
}

static void calls_that_take_longer_and_cost_more_do_not(void **state)
{
	assert_false(gain(1800, 3300, 2));
	assert_false(gain(1800, 28000, 16));
}

static void so_it_is_if_a_helper_came_late(void **state)
{
	assert_false(gain(1200, 1300, 2));
}

static void a_busy_machine_is_not_the_device(void **state)
{
	assert_true(gain(20000, 900, 2));
	assert_true(gain(20000, 1100, 2));
}

static void calls_that_wait_need_no_cpu(void **state)
{
	assert_true(gain(500, 9000, 2));
}

static void without_a_second_thread_nothing_is_known(void **state)
{
	assert_true(gain(9000, 9000, 1));
	assert_true(gain(9000, 9000, 0));
}

static void calls_of_nothing_say_nothing(void **state)
{
	struct calls_cost nothing = { 0 }, some = cost(2, 10, 10);

	assert_true(calls_at_once_gain(&nothing, &some, 2));
	assert_true(calls_at_once_gain(&some, &nothing, 2));
}

KTEST_MAIN(KTEST(calls_that_take_less_together_gain),
	   KTEST(calls_that_take_longer_and_cost_more_do_not),
	   KTEST(so_it_is_if_a_helper_came_late),
	   KTEST(a_busy_machine_is_not_the_device),
	   KTEST(calls_that_wait_need_no_cpu),
	   KTEST(without_a_second_thread_nothing_is_known),
	   KTEST(calls_of_nothing_say_nothing))
