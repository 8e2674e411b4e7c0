/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Calls of a device by two threads are given up only where one beside another was seen to
 * need nearly twice the CPU time of one alone.
 */
#include "ktest.h"

#include "ops/calls_at_once.c"

#define MIB ((uint64_t)1 << 20)
#define CALL_NS 1000

/* Of a call of one MiB. */
static void see_call(struct calls_seen *seen, uint64_t cpu_ns, uint64_t wall_ns,
		     uint64_t beside_ns)
{
	struct call_cost call = { MIB, cpu_ns, wall_ns, beside_ns };

	calls_seen_add(seen, &call);
}

static struct calls_seen two_alone(void)
{
	struct calls_seen seen = { 0 };

	/* The first one is cold. */
	see_call(&seen, 3 * CALL_NS, 3 * CALL_NS, 0);
	see_call(&seen, CALL_NS, CALL_NS, 0);
	return seen;
}

/* Four calls beside another for all the time. */
static bool find_gain(uint64_t cpu_ns, uint64_t wall_ns)
{
	struct calls_seen seen = two_alone();

	for (int i = 0; i < 4; i++) {
		assert_false(calls_seen_enough(&seen));
		see_call(&seen, cpu_ns, wall_ns, wall_ns);
	}
	assert_true(calls_seen_enough(&seen));
	return calls_at_once_gain(&seen);
}

static void calls_that_cost_less_than_twice_as_much_gain(void **state)
{
	(void)state;
	assert_true(find_gain(CALL_NS, CALL_NS));
	assert_true(find_gain(CALL_NS * 3 / 2, CALL_NS * 3 / 2));
}

static void calls_that_cost_twice_as_much_do_not(void **state)
{
	(void)state;
	assert_false(find_gain(2 * CALL_NS, 2 * CALL_NS));
	assert_false(find_gain(9 * CALL_NS, 9 * CALL_NS));
}

static void a_busy_machine_is_not_the_device(void **state)
{
	(void)state;
	assert_true(find_gain(CALL_NS, 20 * CALL_NS));
}

/* Those that hinder one another do so now more, now less. */
static void all_calls_beside_others_count(void **state)
{
	struct calls_seen seen = two_alone();

	(void)state;
	for (uint64_t i = 0; i < 8; i++) {
		uint64_t ns = CALL_NS * (i % 2 ? 4 : 1);

		see_call(&seen, ns, ns, ns);
	}
	assert_false(calls_at_once_gain(&seen));
}

/* As in a trial in which the helper comes in the middle: 1.2 times the CPU time each. */
static void
calls_that_had_another_beside_them_for_a_part_say_nothing(void **state)
{
	struct calls_seen seen = two_alone();

	(void)state;
	for (int i = 0; i < 9; i++)
		see_call(&seen, CALL_NS * 6 / 5, CALL_NS * 6 / 5, CALL_NS / 2);
	assert_false(calls_seen_enough(&seen));
	assert_true(calls_at_once_gain(&seen));
	for (int i = 0; i < 4; i++)
		see_call(&seen, 2 * CALL_NS, 2 * CALL_NS, 2 * CALL_NS - 100);
	assert_true(calls_seen_enough(&seen));
	assert_false(calls_at_once_gain(&seen));
}

static void the_end_of_a_call_may_be_alone(void **state)
{
	struct calls_seen seen = two_alone();

	(void)state;
	for (int i = 0; i < 4; i++)
		see_call(&seen, 2 * CALL_NS, 2 * CALL_NS, CALL_NS * 2 * 9 / 10);
	assert_false(calls_at_once_gain(&seen));
}

static void without_calls_of_both_kinds_nothing_is_known(void **state)
{
	struct calls_seen seen = two_alone(), none = { 0 };

	(void)state;
	assert_true(calls_at_once_gain(&none));
	assert_true(calls_at_once_gain(&seen));
	for (int i = 0; i < 9; i++)
		see_call(&none, CALL_NS, CALL_NS, CALL_NS);
	assert_false(calls_seen_enough(&none));
	assert_true(calls_at_once_gain(&none));
}

/* Better than to do as if it gained. */
static void one_call_beside_others_tells_if_there_were_no_more(void **state)
{
	struct calls_seen seen = two_alone();

	(void)state;
	see_call(&seen, 3 * CALL_NS, 3 * CALL_NS, 3 * CALL_NS);
	assert_false(calls_seen_enough(&seen));
	assert_false(calls_at_once_gain(&seen));
}

static void calls_of_nothing_say_nothing(void **state)
{
	struct calls_seen seen = two_alone();
	struct call_cost nothing = { 0, CALL_NS, CALL_NS, CALL_NS };

	(void)state;
	for (int i = 0; i < 9; i++)
		calls_seen_add(&seen, &nothing);
	assert_false(calls_seen_enough(&seen));
}

KTEST_MAIN(KTEST(calls_that_cost_less_than_twice_as_much_gain),
	   KTEST(calls_that_cost_twice_as_much_do_not),
	   KTEST(a_busy_machine_is_not_the_device),
	   KTEST(all_calls_beside_others_count),
	   KTEST(calls_that_had_another_beside_them_for_a_part_say_nothing),
	   KTEST(the_end_of_a_call_may_be_alone),
	   KTEST(without_calls_of_both_kinds_nothing_is_known),
	   KTEST(one_call_beside_others_tells_if_there_were_no_more),
	   KTEST(calls_of_nothing_say_nothing))
