/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The leader sleeps for as long as it takes when all have been idle for some time.  If it is
 * woken twice in quick succession it polls only once at first, and then again: a task that
 * nobody takes may have been queued in between.
 */
#include "support/runs.h"

#include "runtime/rt.h"

#define TRIES 10
/* A leader that was woken sleeps again sooner. */
#define POLLS_NS 400000

static struct ktrt_group *held;

static int wait_for_held(void *arg)
{
	return ktrt_group_wait(held);
}

static int do_nothing(void *arg)
{
	return 0;
}

/* The only worker waits for something that no task brings. */
static void put_all_to_sleep(void)
{
	ktest_check(!ktrt_group_new(&held));
	at_add(&held->live, 1);
	ktest_check(!ktrt_spawn(wait_for_held, NULL));
	ktest_check(holds_soon(!sched_work_visible()));
	nap_us(150000);
	ktest_check(holds_soon(at_load_seq(&rt.leader_sleeps)));
}

/* It finds nothing, and is about to sleep again. */
static void have_leader_poll(void)
{
	uint64_t end_ns = ktest_now_ns() + POLLS_NS;
	bool polled = false;

	leader_kick();
	while (ktest_now_ns() < end_ns) {
		if (!at_load_seq(&rt.leader_sleeps))
			polled = true;
		else if (polled)
			return;
	}
}

static void have_one_done(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	put_all_to_sleep();
	ktest_check(!ktrt_group_new(&attr.group));
	have_leader_poll();
	ktest_check(!ktrt_spawn_attr(do_nothing, NULL, &attr));
	ktest_check(!ktrt_group_wait(attr.group));
	task_leave_group(held);
	ktest_check(!ktrt_wait());
	ktrt_group_free(attr.group);
	ktrt_group_free(held);
}

static int have_some_done(void *arg)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = options.max_threads = 1;
	options.flags = KTRT_NO_UMT;
	ktest_check(!ktrt_start(&options));
	for (int i = 0; i < TRIES; i++)
		have_one_done();
	ktest_check(!ktrt_stop());
	return 0;
}

static void what_comes_in_between_is_seen(void **state)
{
	assert_int_equal(ktest_in_child(have_some_done, NULL), 0);
}

KTEST_MAIN(KTEST(what_comes_in_between_is_seen))
