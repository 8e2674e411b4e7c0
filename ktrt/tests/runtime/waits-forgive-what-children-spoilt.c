/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What is behind a task that has waited finds data good that its children named, whoever
 * spoilt it, and also if they named it weakly and were complete before it was ready.  Data
 * that none of them named is as it was before the task.  What children spoil is so with
 * events outstanding, too.  Whatever comes first makes no difference.
 */
#include "support/runs.h"

#define PARTS 4

static int data[PARTS];
static bool as_range;
/* When what is held is complete. */
static enum { AT_FIRST, AFTER_WAIT, AFTER_TASK, NR_ORDERS } opens;
static struct ktrt_task *held;
static struct ktrt_group *cancelled, *beside, *alone;
static unsigned long ran;

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static int fail_now(void *arg)
{
	return 5;
}

static int do_nothing(void *arg)
{
	return 0;
}

static int spawn_part(ktrt_func func, int part, int nr, unsigned mode,
		      struct ktrt_group *group)
{
	struct ktrt_dep dep = { &data[part], 0, mode };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	if (as_range)
		dep.len = (size_t)nr * sizeof(data[0]);
	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.group = group;
	return ktrt_spawn_attr(func, NULL, &attr);
}

static int spawn_whole(ktrt_func func, unsigned mode, struct ktrt_group *group)
{
	return spawn_part(func, 0, PARTS, mode, group);
}

/* ---- who writes before the task ---- */

/* It is complete when the task, which names it weakly, says so. */
static int hold_task(void *arg)
{
	int error = ktrt_events_add(1);

	set(held, ktrt_self());
	return error;
}

static int hold_and_fail(void *arg)
{
	return hold_task(arg) ? -EIO : 5;
}

static void open_data(void)
{
	while (!get(held))
		ktrt_yield();
	ktrt_events_done(get(held), 1);
}

/* ---- tasks ---- */

/* What the task does with children, before or after the data is ready.
 * @then: after the wait, or NULL */
static int wait_for_children_then(int (*make)(void), int (*then)(void))
{
	int error;

	if (opens == AT_FIRST)
		open_data();
	error = make();
	if (!error)
		ktrt_wait();
	if (!error && then)
		error = then();
	if (opens == AFTER_WAIT)
		open_data();
	return error;
}

static int wait_for_children(int (*make)(void))
{
	return wait_for_children_then(make, NULL);
}

static int make_skipped(void)
{
	return spawn_whole(do_nothing, KTRT_WEAK_INOUT, cancelled);
}

static int make_failing(void)
{
	int error = spawn_whole(fail_now, KTRT_WEAK_INOUT, NULL);

	return error ? error : spawn_whole(do_nothing, KTRT_WEAK_INOUT, NULL);
}

static int make_weak(void)
{
	return spawn_whole(do_nothing, KTRT_WEAK_INOUT, NULL);
}

static int make_writing(void)
{
	return spawn_whole(do_nothing, KTRT_WEAK_OUT, NULL);
}

static int make_reading(void)
{
	return spawn_whole(do_nothing, KTRT_WEAK_IN, NULL);
}

static int make_others(void)
{
	return ktrt_spawn(do_nothing, NULL);
}

/* The rest of the range none names. */
static int make_part(void)
{
	return spawn_part(do_nothing, 1, 2, KTRT_WEAK_INOUT, NULL);
}

static int make_part_reading(void)
{
	return spawn_part(do_nothing, 1, 2, KTRT_WEAK_IN, NULL);
}

static int have_skipped(void *arg)
{
	return wait_for_children(make_skipped);
}

static int have_failing(void *arg)
{
	return wait_for_children(make_failing);
}

static int have_weak(void *arg)
{
	return wait_for_children(make_weak);
}

static int have_writing(void *arg)
{
	return wait_for_children(make_writing);
}

static int have_reading(void *arg)
{
	return wait_for_children(make_reading);
}

static int read_all(void)
{
	return spawn_whole(count_task, KTRT_IN, NULL);
}

/* They are read after the wait, and not yet ready.  What reads them is waited for. */
static int read_before_ready(int (*make)(void))
{
	return wait_for_children_then(make, read_all);
}

static int have_failing_then_read_soon(void *arg)
{
	return read_before_ready(make_failing);
}

static int have_reading_twice(void *arg)
{
	return read_before_ready(make_reading);
}

/* Of the data a part is read after the wait; so it is waited for. */
static int have_failing_then_read(void *arg)
{
	int error = have_failing(arg);

	return error ? error : spawn_part(count_task, 1, 2, KTRT_IN, NULL);
}

static int have_others(void *arg)
{
	return wait_for_children(make_others);
}

static int have_part_reading(void *arg)
{
	return wait_for_children(make_part_reading);
}

static int have_part(void *arg)
{
	return wait_for_children(make_part);
}

/* @wanted: how many of those run that read the data, behind the task too. */
static void expect_ran(ktrt_func before, ktrt_func task, unsigned mode,
		       unsigned long wanted)
{
	set(held, NULL);
	set(ran, 0);
	assert_int_equal(spawn_whole(before, KTRT_OUT, beside), 0);
	assert_int_equal(spawn_whole(task, mode, alone), 0);
	assert_int_equal(spawn_whole(count_task, KTRT_IN, beside), 0);
	/* It does not wait for what it names weakly. */
	assert_int_equal(ktrt_group_wait(alone), 0);
	if (opens == AFTER_TASK)
		open_data();
	assert_int_equal(ktrt_wait(), 0);
	ktrt_group_wait(beside);
	ktrt_group_wait(cancelled);
	assert_int_equal(get(ran), wanted);
}

static void in_each_order(void (*test)(void))
{
	assert_int_equal(ktrt_group_new(&cancelled), 0);
	assert_int_equal(ktrt_group_new(&beside), 0);
	assert_int_equal(ktrt_group_new(&alone), 0);
	ktrt_group_cancel(cancelled);
	for (int i = 0; i < NR_ORDERS * 2; i++) {
		opens = i / 2;
		as_range = i % 2;
		test();
	}
	ktrt_group_free(cancelled);
	ktrt_group_free(beside);
	ktrt_group_free(alone);
}

/* ---- what children name, and what not ---- */

static void expect_forgiven(ktrt_func before)
{
	expect_ran(before, have_skipped, KTRT_WEAK_INOUT, 1);
	expect_ran(before, have_skipped, KTRT_WEAK_OUT, 1);
	expect_ran(before, have_failing, KTRT_WEAK_INOUT, 1);
	expect_ran(before, have_weak, KTRT_WEAK_INOUT, 1);
	expect_ran(before, have_weak, KTRT_WEAK_OUT, 1);
	expect_ran(before, have_writing, KTRT_WEAK_INOUT, 1);
	expect_ran(before, have_reading, KTRT_WEAK_INOUT, 1);
	if (opens != AFTER_TASK) {
		expect_ran(before, have_failing_then_read_soon, KTRT_WEAK_INOUT,
			   2);
		expect_ran(before, have_reading_twice, KTRT_WEAK_INOUT, 2);
	}
	/* They are waited for. */
	if (as_range && opens != AFTER_TASK)
		expect_ran(before, have_failing_then_read, KTRT_WEAK_INOUT, 2);
}

static void children_are_forgiven(void)
{
	expect_forgiven(hold_task);
	expect_forgiven(hold_and_fail);
}

static void forgiven_in_each_order(void)
{
	in_each_order(children_are_forgiven);
}

static void what_children_name_is_forgiven(void **state)
{
	in_each_way(forgiven_in_each_order);
}

static void others_are_as_before(void)
{
	expect_ran(hold_task, have_others, KTRT_WEAK_INOUT, 1);
	expect_ran(hold_and_fail, have_others, KTRT_WEAK_INOUT, 0);
	expect_ran(hold_and_fail, have_others, KTRT_WEAK_OUT, 1);
	if (!as_range)
		return;
	expect_ran(hold_and_fail, have_part, KTRT_WEAK_INOUT, 0);
	expect_ran(hold_and_fail, have_part_reading, KTRT_WEAK_INOUT, 0);
}

static void kept_in_each_order(void)
{
	in_each_order(others_are_as_before);
}

static void other_data_is_as_before(void **state)
{
	in_each_way(kept_in_each_order);
}

/* ---- events ---- */

/* Its event is done at the end of its body, or by another task after that. */
static int fail_below(void *arg)
{
	int error = ktrt_events_add(1);

	if (!error)
		error = spawn_whole(fail_now, KTRT_INOUT, beside);
	set(held, ktrt_self());
	if (!error && opens == AT_FIRST)
		ktrt_events_done(ktrt_self(), 1);
	return error;
}

static void expect_spoilt(void)
{
	struct ktrt_dep dep = { data, as_range ? sizeof(data) : 0, KTRT_INOUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.flags = KTRT_EARLY_RELEASE;
	set(held, NULL);
	set(ran, 0);
	assert_int_equal(ktrt_spawn_attr(fail_below, NULL, &attr), 0);
	assert_int_equal(spawn_whole(count_task, KTRT_IN, beside), 0);
	if (opens != AT_FIRST) {
		nap_us(100);
		open_data();
	}
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(ktrt_group_wait(beside), 5);
	assert_int_equal(get(ran), 0);
}

static void spoilt_in_each_order(void)
{
	in_each_order(expect_spoilt);
}

static void events_hide_nothing(void **state)
{
	in_each_way(spoilt_in_each_order);
}

KTEST_MAIN(KTEST(what_children_name_is_forgiven),
	   KTEST(other_data_is_as_before), KTEST(events_hide_nothing))
