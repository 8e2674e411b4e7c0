/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A mapping that nobody touches costs ever fewer polls, up to a bound, and one that
 * moves again is polled often at once.  Windows without a helper are followed by pauses
 * that grow, until a helper had a CPU; and of a program that keeps all CPUs busy itself
 * hardly a page is read. */
#include "ktest.h"

#include "ahead/poll_schedule.h"

#define BOUND_NS 100000000u

/* Polls when they are due.  Return: how many polls @ns take. */
static unsigned count_polls(struct poll_schedule *schedule, uint64_t now,
			    uint64_t ns, bool moved)
{
	uint64_t end = now + ns;
	unsigned nr = 0;

	for (; now < end; nr++) {
		uint64_t before = now;

		poll_schedule_next(schedule, moved, false, now);
		now = schedule->due_ns;
		assert_true(now > before && now - before < BOUND_NS);
	}
	return nr;
}

static void idle_mappings_cost_little(void **state)
{
	struct poll_schedule schedule;
	unsigned first, later, moving;

	poll_schedule_init(&schedule, 5);
	assert_int_equal(schedule.due_ns, 5);
	assert_int_equal(schedule.scan_due_ns, 5);
	assert_false(poll_schedule_rests(&schedule));
	first = count_polls(&schedule, 5, 1000000000, false);
	assert_true(poll_schedule_rests(&schedule));
	later = count_polls(&schedule, 1000000005, 1000000000, false);
	moving = count_polls(&schedule, 2000000005, 1000000000, true);
	assert_false(poll_schedule_rests(&schedule));
	assert_true(later < first && later <= 25);
	assert_int_equal(moving, 1000000000 / POLL_LEAST_NS);
}

static void a_slow_scan_is_rare(void **state)
{
	struct poll_schedule schedule;

	poll_schedule_init(&schedule, 0);
	for (int i = 0; i < 100; i++)
		poll_schedule_scanned(&schedule, false, 1000, 10000000);
	assert_true(schedule.scan_due_ns >= 1000 + 50 * (uint64_t)10000000);
	poll_schedule_scanned(&schedule, true, 1000, 10);
	assert_true(schedule.scan_due_ns < 1000 + BOUND_NS);
}

/* Soon after a CPU is idle again it is made up for. */
static void a_scan_waits_for_idle_cpus(void **state)
{
	struct poll_schedule schedule;
	uint64_t now = 7;

	poll_schedule_init(&schedule, now);
	for (int i = 0; i < 100; i++) {
		poll_schedule_postpone_scan(&schedule, now);
		assert_true(schedule.scan_due_ns > now + BOUND_NS / 10 &&
			    schedule.scan_due_ns < now + BOUND_NS);
		now = schedule.scan_due_ns;
	}
}

/* How long nobody is asked after windows without a helper: the first time after four,
 * later after each. */
static uint64_t pause_of(struct poll_schedule *schedule)
{
	int nr = schedule->pause_ns ? 1 : 4;

	for (int i = 0; i < nr; i++) {
		poll_schedule_next(schedule, true, false, 0);
		assert_true(schedule->pause_ns ||
			    schedule->due_ns == POLL_LEAST_NS);
		poll_schedule_helped(schedule, false);
	}
	poll_schedule_next(schedule, true, false, 0);
	return schedule->due_ns;
}

static void missing_helpers_are_left_alone(void **state)
{
	struct poll_schedule schedule;
	uint64_t first, second;

	poll_schedule_init(&schedule, 0);
	first = pause_of(&schedule);
	second = pause_of(&schedule);
	assert_true(first > POLL_LEAST_NS && second > first);
	for (int i = 0; i < 100; i++)
		second = pause_of(&schedule);
	assert_int_equal(second, BOUND_NS);
	poll_schedule_helped(&schedule, true);
	poll_schedule_next(&schedule, true, false, 0);
	assert_int_equal(schedule.due_ns, POLL_LEAST_NS);
	assert_int_equal(pause_of(&schedule), first);
}

/* The program makes huge pages itself, on CPUs that polls would take from it. */
static void advice_makes_polls_rarer(void **state)
{
	struct poll_schedule schedule;
	unsigned nr;

	poll_schedule_init(&schedule, 0);
	pause_of(&schedule);
	/* The CPUs may have been busy for a moment only. */
	poll_schedule_advised(&schedule);
	nr = count_polls(&schedule, 0, 1000000000, true);
	assert_int_equal(nr, 1000000000 / POLL_LEAST_NS);
	poll_schedule_advised(&schedule);
	nr = count_polls(&schedule, 0, 1000000000, true);
	assert_in_range(nr, 1000, 2000);
	poll_schedule_helped(&schedule, true);
	nr = count_polls(&schedule, 0, 1000000000, true);
	assert_int_equal(nr, 1000000000 / POLL_LEAST_NS);
}

/* How many of the polls of two seconds read pages. */
static unsigned count_readings(struct poll_schedule *schedule, bool full)
{
	unsigned nr = 0;

	for (uint64_t now = 0; now < 2000000000; now = schedule->due_ns) {
		if (full && poll_schedule_may_leave(schedule, now)) {
			poll_schedule_leave(schedule, now);
			continue;
		}
		poll_schedule_read(schedule, now);
		nr++;
		poll_schedule_helped(schedule, false);
		poll_schedule_next(schedule, true, false, now);
	}
	return nr;
}

/* Nor does anybody look at its pages, but now and then: it may have touched all. */
static void a_program_on_all_cpus_is_left_alone(void **state)
{
	struct poll_schedule schedule;

	poll_schedule_init(&schedule, 0);
	assert_in_range(count_readings(&schedule, true), 5, 8);
	assert_in_range(count_readings(&schedule, true), 1, 3);
	/* Others keep the CPUs busy, perhaps for a moment only. */
	assert_in_range(count_readings(&schedule, false), 20, 30);
	poll_schedule_helped(&schedule, true);
	/* Where there was no pause nobody need ask whether the CPUs are busy. */
	assert_false(poll_schedule_may_leave(&schedule, 2000000000));
	poll_schedule_read(&schedule, 2000000000);
	assert_false(poll_schedule_may_leave(&schedule, 2000000001));
}

/* Nobody has looked, so nothing is known to have moved. */
static void what_rests_does_so_after_it_was_left_alone(void **state)
{
	struct poll_schedule schedule;
	uint64_t pause_ns, now = 1000000000;

	poll_schedule_init(&schedule, 0);
	pause_ns = pause_of(&schedule);
	count_polls(&schedule, 0, now, false);
	assert_true(poll_schedule_rests(&schedule));
	poll_schedule_read(&schedule, now);
	assert_true(poll_schedule_may_leave(&schedule, now));
	poll_schedule_leave(&schedule, now);
	assert_int_equal(schedule.due_ns, now + 2 * pause_ns);
	assert_true(poll_schedule_rests(&schedule));
}

KTEST_MAIN(KTEST(idle_mappings_cost_little), KTEST(a_slow_scan_is_rare),
	   KTEST(a_scan_waits_for_idle_cpus),
	   KTEST(missing_helpers_are_left_alone),
	   KTEST(advice_makes_polls_rarer),
	   KTEST(a_program_on_all_cpus_is_left_alone),
	   KTEST(what_rests_does_so_after_it_was_left_alone))
