/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Who waits for data may hold a lock that its other children need: the call runs none of
 * them, however many these are and whatever is known of their functions.  An attached thread
 * in the middle of a task leaves them to the worker, although no other thread may be made.
 */
#include "support/attached_thread.h"

#define HELD 3000 /* more than caches hold, and than the lower limit */
#define CALLS 300 /* the runtime looks at each 64th child */

static __thread bool holds_lock;
static unsigned long nr_done, wrong;
static struct ktrt_task *holder;
static char held, free_data;

static int need_lock(void *arg)
{
	if (holds_lock)
		more(wrong);
	more(nr_done);
	return 0;
}

static ktrt_func needs_lock = need_lock;

/* Its data is there only after the event. */
static int hold_data(void *arg)
{
	set(holder, ktrt_self());
	return ktrt_events_add(1);
}

static int spawn_on(const char *addr, ktrt_func func, void *arg, unsigned mode,
		    unsigned flags)
{
	const struct ktrt_dep dep = { addr, 0, mode };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.flags = flags;
	return ktrt_spawn_attr(func, arg, &attr);
}

/* One child is ready; nobody else may have taken it yet. */
static int wait_with_lock(void)
{
	const struct ktrt_dep dep = { &free_data, 0, KTRT_INOUT };
	int error = ktrt_spawn(call_briefly, &needs_lock);

	if (error)
		return error;
	holds_lock = true;
	error = ktrt_wait_for(&dep, 1);
	holds_lock = false;
	return error;
}

static int make_and_wait(void *arg)
{
	int error = spawn_on(&held, hold_data, NULL, KTRT_OUT, KTRT_UNDEFERRED);

	for (int i = 0; i < HELD && !error; i++)
		error = spawn_on(&held, call_briefly, &needs_lock, KTRT_IN, 0);
	for (int i = 0; i < CALLS && !error; i++)
		error = wait_with_lock();
	ktrt_events_done(get(holder), 1);
	return error ? error : ktrt_wait();
}

static void wait_in_both(unsigned workers, unsigned max_children)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = workers;
	options.max_children = max_children;
	assert_int_equal(ktrt_start(&options), 0);
	let_call_briefly_be_known();
	set(nr_done, 0);
	assert_int_equal(ktrt_run(make_and_wait, NULL), 0);
	assert_int_equal(get(nr_done), HELD + CALLS);
	assert_int_equal(make_and_wait(NULL), 0);
	assert_int_equal(get(nr_done), 2 * (HELD + CALLS));
	assert_int_equal(get(wrong), 0);
	assert_int_equal(ktrt_stop(), 0);
}

static void they_run_no_other_child(void **state)
{
	wait_in_both(1, 0);
	wait_in_both(0, 0);
	wait_in_both(1, 1024);
	wait_in_both(0, 1024);
}

/* ---- where an attached thread does the task that waits ---- */

static struct worker *waiter;
static unsigned begun, was_stale;

/* It seems to work until the other thread sleeps. */
static int write_late(void *arg)
{
	uint64_t until = ktest_now_ns() + 60000000000;

	set(begun, 1);
	while (!get(wrong) && !at_load(&waiter->awaited) &&
	       ktest_now_ns() < until)
		cpu_relax();
	return 0;
}

static int wait_somehow(bool undeferred)
{
	const struct ktrt_dep dep = { &free_data, 0, KTRT_IN };

	return undeferred ? spawn_on(&free_data, call_briefly, NULL, KTRT_IN,
				     KTRT_UNDEFERRED)
			  : ktrt_wait_for(&dep, 1);
}

/* The newest child needs the lock, and the worker can do it once the data is there. */
static int wait_without_core(void *undeferred)
{
	int error = spawn_on(&free_data, write_late, NULL, KTRT_OUT, 0);

	if (!error && !holds_soon(get(begun)))
		error = -ETIMEDOUT;
	if (!error)
		error = ktrt_spawn(call_briefly, &needs_lock);
	if (error || waiter->core)
		return error ? error : -EINVAL;
	if (waiter->stalls != at_load(&rt.stalls))
		more(was_stale);
	holds_lock = true;
	error = wait_somehow(undeferred);
	holds_lock = false;
	return error;
}

static int outlast_stall(void *arg)
{
	uint32_t before = at_load(&rt.stalls);

	return holds_soon(at_load(&rt.stalls) != before) ? 0 : -ETIMEDOUT;
}

/* Tasks were ready and none began, because the worker was blocked, before there was a wait. */
static void provoke_stall(void)
{
	assert_int_equal(ktrt_spawn(outlast_stall, NULL), 0);
	assert_true(holds_soon(!sched_work_visible()));
	assert_int_equal(ktrt_spawn(call_briefly, NULL), 0);
	assert_true(holds_soon(!sched_work_visible()));
}

static void wait_at_limit(unsigned flags, bool undeferred, bool stale)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	options.workers = options.max_threads = 1;
	options.flags = flags;
	assert_int_equal(ktrt_start(&options), 0);
	waiter = self_worker;
	let_call_briefly_be_known();
	set(begun, 0);
	set(nr_done, 0);
	set(was_stale, 0);
	if (stale)
		provoke_stall();
	attr.flags = KTRT_UNDEFERRED;
	assert_int_equal(ktrt_spawn_attr(wait_without_core,
					 (void *)(uintptr_t)undeferred, &attr),
			 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_true(get(was_stale) || !stale);
	assert_int_equal(get(nr_done), 1);
	assert_int_equal(get(wrong), 0);
	assert_int_equal(ktrt_stop(), 0);
}

static void attached_threads_leave_them_to_workers(void **state)
{
	for (int stale = 0; stale < 2; stale++) {
		wait_at_limit(KTRT_NO_UMT, false, stale);
		wait_at_limit(KTRT_NO_UMT, true, stale);
		wait_at_limit(KTRT_UMT_FIRST, false, stale);
		wait_at_limit(KTRT_UMT_FIRST, true, stale);
	}
}

KTEST_MAIN(KTEST(they_run_no_other_child),
	   KTEST(attached_threads_leave_them_to_workers))
