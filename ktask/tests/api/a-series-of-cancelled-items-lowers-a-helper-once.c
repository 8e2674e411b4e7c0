/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper whose items come soon after each other lowers itself for the first one
 * and stays low, also if each is cancelled while it lowers itself.  It raises itself
 * before it sleeps, and is raised by who cancels an item of it after it lost its CPU.
 *
 * The helper's clock stands still, so that it spins until it shall be late, and the
 * helper is held while it lowers itself.  So nobody needs a CPU in time.
 */
#include "support/one_helper.h"

#include <sched.h>
#include <sys/resource.h>

#define NR_ITEMS 16

static _Atomic unsigned nr_lowered;
static _Atomic bool hold_helper, is_held;

/* Stands before that of the C library.  Called by a helper that is SCHED_IDLE already. */
int setpriority(__priority_which_t which, id_t who, int nice)
{
	if (nice == 19) {
		nr_lowered++;
		is_held = hold_helper;
		while (hold_helper)
			nap_us(100);
		is_held = false;
	}
	return (int)syscall(SYS_setpriority, which, who, nice);
}

/* Return: false if the helper did not lower itself, but has done the item. */
static bool await_lowering(const struct pool_item *item)
{
	uint64_t since_ns = ktest_now_ns();

	while (!is_held && pool_item_state(item) != POOL_ITEM_DONE)
		nap_or_fail(since_ns);
	return is_held;
}

static void release_helper(void)
{
	uint64_t since_ns = ktest_now_ns();

	hold_helper = false;
	while (is_held)
		nap_or_fail(since_ns);
}

/* The helper's clock says whether it still spins at @now_ns. */
static pid_t cancel_or_done(uint64_t now_ns)
{
	struct pool_item item = new_item();

	hold_helper = true;
	submit_item(&item);
	if (await_lowering(&item))
		assert_true(pool_cancel(&item, now_ns));
	else
		await_done(&item);
	return (pid_t)pool_item_tid(&item);
}

static bool is_low(pid_t tid)
{
	return sched_getscheduler(tid) == SCHED_IDLE;
}

static void fall_asleep(pid_t tid)
{
	uint64_t since_ns = ktest_now_ns();

	helper_is_late = true;
	while (!thread_sleeps(tid))
		nap_or_fail(since_ns);
	helper_is_late = false;
}

static void a_series_lowers_it_once(void **state)
{
	pid_t tid = 0;

	enter_pool();
	nr_lowered = 0;
	for (int i = 0; i < NR_ITEMS; i++) {
		tid = cancel_or_done(0);
		release_helper();
	}
	assert_int_equal(nr_lowered, 1);
	assert_int_equal(nr_taken, NR_ITEMS - 1);
	assert_true(is_low(tid));
	fall_asleep(tid);
	assert_false(is_low(tid));
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)tid),
			 getpriority(PRIO_PROCESS, 0));
	pool_leave();
}

static void without_a_cpu_it_is_raised(void **state)
{
	struct pool_item item;
	pid_t tid;

	enter_pool();
	item = new_item();
	submit_item(&item);
	await_done(&item);
	tid = cancel_or_done(UINT64_MAX);
	assert_true(is_held);
	assert_false(is_low(tid));
	release_helper();
	fall_asleep(tid);
	assert_false(is_low(tid));
	pool_leave();
}

KTEST_MAIN(KTEST(a_series_lowers_it_once), KTEST(without_a_cpu_it_is_raised))
