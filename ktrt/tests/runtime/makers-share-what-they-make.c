/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A maker whose queue is full does its tasks itself, but not what others wait
 * for: as soon as they have emptied the queue it is filled again.  Tasks that
 * make tasks that make tasks need no more stack for that.
 */
#include "support/runs.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MANY 1000ul
#define DEEP (KTEST_TSAN || KTEST_ASAN ? 20000ul : 200000ul)
#define STACK_BYTES (1u << 20)

static unsigned long ran;
static long who;

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static int tell_thread(void *arg)
{
	set(who, syscall(SYS_gettid));
	return 0;
}

/* It neither waits for its children nor does any that others could. */
static int make_and_watch(void *arg)
{
	for (unsigned long i = 0; i < MANY; i++)
		if (ktrt_spawn(count_task, NULL))
			return -ENOMEM;
	if (!holds_soon(get(ran) == MANY))
		return -EIO;
	if (ktrt_spawn(tell_thread, NULL))
		return -ENOMEM;
	if (!holds_soon(get(who)))
		return -EIO;
	return get(who) == syscall(SYS_gettid) ? -EDEADLK : 0;
}

static void full_queues_are_filled_again(void **state)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	assert_int_equal(ktrt_start(NULL), 0);
	assert_int_equal(ktrt_info_get(&info), 0);
	if (info.workers < 2) {
		assert_int_equal(ktrt_stop(), 0);
		ktest_skip("one worker has nobody to share with");
	}
	for (int round = 0; round < 20; round++) {
		set(ran, 0);
		set(who, 0);
		assert_int_equal(ktrt_run(make_and_watch, NULL), 0);
	}
	assert_int_equal(ktrt_stop(), 0);
}

static int spawn_down(void *arg)
{
	unsigned long below = (unsigned long)arg;

	more(ran);
	return below ? ktrt_spawn(spawn_down, (void *)(below - 1)) : 0;
}

static int make_many_then_deep(void *arg)
{
	for (unsigned long i = 0; i < MANY; i++)
		if (ktrt_spawn(count_task, NULL))
			return -ENOMEM;
	return ktrt_spawn(spawn_down, (void *)DEEP);
}

static void deep_tasks_fit_a_stack(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.stack_bytes = STACK_BYTES;
	for (options.workers = 1; options.workers <= 2; options.workers++) {
		set(ran, 0);
		assert_int_equal(ktrt_start(&options), 0);
		assert_int_equal(ktrt_run(make_many_then_deep, NULL), 0);
		assert_int_equal(get(ran), MANY + DEEP + 1);
		assert_int_equal(ktrt_stop(), 0);
	}
}

/* Left in the middle of tasks that were done at once. */
static int leave_below(void *arg)
{
	unsigned long below = (unsigned long)arg;

	more(ran);
	if (!below)
		pthread_exit(NULL);
	return ktrt_spawn(leave_below, (void *)(below - 1));
}

static int make_many_then_leave(void *arg)
{
	for (unsigned long i = 0; i < MANY; i++)
		if (ktrt_spawn(count_task, NULL))
			return -ENOMEM;
	return ktrt_spawn(leave_below, (void *)10ul);
}

static void threads_may_end_in_them(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	for (options.workers = 1; options.workers <= 2; options.workers++) {
		set(ran, 0);
		assert_int_equal(ktrt_start(&options), 0);
		assert_int_equal(ktrt_run(make_many_then_leave, NULL),
				 -ECANCELED);
		assert_int_equal(get(ran), MANY + 11);
		assert_int_equal(ktrt_run(count_task, NULL), 0);
		assert_int_equal(ktrt_stop(), 0);
	}
}

KTEST_MAIN(KTEST(full_queues_are_filled_again), KTEST(deep_tasks_fit_a_stack),
	   KTEST(threads_may_end_in_them))
