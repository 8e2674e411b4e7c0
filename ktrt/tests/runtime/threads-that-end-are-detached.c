/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread that ends, however it does, waits for its tasks and is detached then:
 * the runtime can be stopped.
 */
#include "support/runs.h"

#include <pthread.h>

#include "support/attached_thread.h"

static unsigned long ran, dropped;

static int count_slowly(void *arg)
{
	nap_us(20000);
	more(ran);
	return 0;
}

static void count_drop(void *object)
{
	more(dropped);
}

static int fail_with_object(void *arg)
{
	return ktrt_code_new("test", &dropped, count_drop);
}

static int leave_thread(void *arg)
{
	pthread_exit(NULL);
}

static void spawn_some(void)
{
	for (int i = 0; i < 5; i++)
		ktest_check(!ktrt_spawn(count_slowly, NULL));
	ktest_check(!ktrt_spawn(fail_with_object, NULL));
}

static void *end_by_return(void *arg)
{
	ktest_check(!ktrt_attach());
	spawn_some();
	return NULL;
}

static void *end_by_exit(void *arg)
{
	ktest_check(!ktrt_attach());
	spawn_some();
	pthread_exit(NULL);
}

static void *end_by_cancel(void *arg)
{
	ktest_check(!ktrt_attach());
	spawn_some();
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return NULL;
}

/* In a task that the thread itself runs. */
static void *end_in_task(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	ktest_check(!ktrt_attach());
	spawn_some();
	attr.flags = KTRT_UNDEFERRED;
	(void)ktrt_spawn_attr(leave_thread, NULL, &attr);
	ktest_check(false);
	return NULL;
}

static void spawn_leaving(void)
{
	static const ktrt_func leave = leave_thread;

	for (int i = 0; i < 100; i++)
		ktest_check(!ktrt_spawn(call_briefly, (void *)&leave));
}

/* In one that it runs while it waits, if it does. */
static void *end_in_wait(void *arg)
{
	ktest_check(!ktrt_attach());
	stay_on_a_core();
	spawn_some();
	spawn_leaving();
	ktrt_wait();
	return NULL;
}

/* It does not end a second time. */
static void *end_before_such(void *arg)
{
	ktest_check(!ktrt_attach());
	stay_on_a_core();
	spawn_leaving();
	return NULL;
}

static void end_one(void *(*func)(void *), unsigned long tasks)
{
	pthread_t thread;

	set(ran, 0);
	set(dropped, 0);
	assert_int_equal(pthread_create(&thread, NULL, func, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(get(ran), tasks);
	assert_true(get(dropped) <= 1);
}

static void end_in_each_way(void)
{
	end_one(end_by_return, 5);
	end_one(end_by_exit, 5);
	end_one(end_by_cancel, 5);
	end_one(end_in_task, 5);
	let_call_briefly_be_known();
	end_one(end_in_wait, 5);
	end_one(end_before_such, 0);
}

static void by_any_way(void **state)
{
	in_each_way(end_in_each_way);
}

/* The thread that has started it ends; another one stops it. */
static void *start_and_end(void *arg)
{
	ktest_check(!ktrt_start(NULL));
	spawn_some();
	return NULL;
}

static void by_who_started_it(void **state)
{
	end_one(start_and_end, 5);
	assert_int_equal(ktrt_attach(), 0);
	assert_int_equal(ktrt_stop(), 0);
	assert_int_equal(ktrt_start(NULL), 0);
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(by_who_started_it), KTEST(by_any_way))
