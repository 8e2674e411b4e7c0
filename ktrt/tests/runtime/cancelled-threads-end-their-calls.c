/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Starting, ending and waking the runtime are no cancellation points: a thread
 * that is to be cancelled comes back from them, and all goes on afterwards.
 */
#include "support/runs.h"

#include <pthread.h>

#include "runtime/rt.h"

static unsigned long ran, came_back;

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static void *start_and_stop(void *arg)
{
	pthread_cancel(pthread_self());
	if (!ktrt_start(NULL) && !ktrt_spawn(count_task, NULL) &&
	    !ktrt_wait() && !ktrt_stop())
		more(came_back);
	pthread_testcancel();
	return NULL;
}

static void *wake_the_leader(void *arg)
{
	if (ktrt_attach())
		return NULL;
	(void)holds_soon(at_load_seq(&rt.leader_sleeps));
	pthread_cancel(pthread_self());
	if (!ktrt_spawn(count_task, NULL) && !ktrt_wait() && !ktrt_detach())
		more(came_back);
	pthread_testcancel();
	return NULL;
}

static void be_cancelled_in(void *(*func)(void *))
{
	pthread_t thread;
	void *result;

	set(ran, 0);
	set(came_back, 0);
	assert_int_equal(pthread_create(&thread, NULL, func, NULL), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(get(came_back), 1);
	assert_int_equal(get(ran), 1);
}

static void starts_and_stops(void **state)
{
	be_cancelled_in(start_and_stop);
	assert_int_equal(ktrt_start(NULL), 0);
	assert_int_equal(ktrt_stop(), 0);
}

static void wakes_the_leader(void **state)
{
	assert_int_equal(ktrt_start(NULL), 0);
	be_cancelled_in(wake_the_leader);
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(starts_and_stops), KTEST(wakes_the_leader))
