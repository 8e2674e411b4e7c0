/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread with the number of one that has ended is another thread.  A leader
 * that ends leaves its events to the next one, and a process whose first thread
 * has ended is served as before.
 */
#include "support/subscribers.h"

#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TRIES 200

static struct umt *subscriber;

/* ---- numbers ---- */

static uint32_t gettid_of_self(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static void *joins_and_ends(void *tid)
{
	*(uint32_t *)tid = gettid_of_self();
	assert_int_equal(umt_thread_add(subscriber), 0);
	return NULL;
}

static void *knows_nothing(void *tid)
{
	if (gettid_of_self() != *(uint32_t *)tid)
		return NULL;
	assert_int_equal(umt_thread_remove(subscriber), -ENOENT);
	assert_int_equal(umt_thread_add(subscriber), 0);
	block_us(1000);
	assert_true(holds_soon(ready_of(subscriber) == 1));
	assert_int_equal(umt_thread_remove(subscriber), 0);
	return tid;
}

/* The kernel gives the number behind this one next, if it is free. */
static bool set_last(uint32_t pid)
{
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
	bool done = file && fprintf(file, "%u", pid) > 0;

	return file && !fclose(file) && done;
}

static void numbers_are_given_anew(unsigned backend)
{
	void *done = NULL;
	pthread_t thread;
	uint32_t tid;
	int i;

	subscriber = subscriber_of(backend, 0);
	pthread_create(&thread, NULL, joins_and_ends, &tid);
	pthread_join(thread, NULL);
	assert_true(holds_soon(!ready_of(subscriber)));
	for (i = 0; i < TRIES && !done; i++) {
		if (!set_last(tid - 1)) {
			umt_close(subscriber);
			ktest_skip("the next number cannot be chosen here");
		}
		pthread_create(&thread, NULL, knows_nothing, &tid);
		pthread_join(thread, &done);
	}
	assert_true(holds_soon(!ready_of(subscriber)));
	assert_all_zero(subscriber);
	umt_close(subscriber);
	if (!done)
		ktest_skip("somebody else always gets the number first");
}

ON_EACH_BACKEND(numbers_are_given_anew)

/* ---- leaders ---- */

static bool is_told(int timeout_ms)
{
	struct pollfd fd = { .fd = umt_fd(subscriber), .events = POLLIN };

	return poll(&fd, 1, timeout_ms) == 1;
}

/* Sees that there is something, and ends before it has read it. */
static void *leads_and_ends(void *unused)
{
	return is_told(60000) ? subscriber : NULL;
}

static void *block_once(void *unused)
{
	assert_int_equal(umt_thread_add(subscriber), 0);
	block_us(20000);
	assert_int_equal(umt_thread_remove(subscriber), 0);
	return NULL;
}

static void leaders_may_end(unsigned backend)
{
	pthread_t leader, worker;
	struct umt_event event;
	void *told;
	int i;

	subscriber = subscriber_of(backend, 0);
	umt_want(subscriber, 1);
	for (i = 0; i < 5; i++) {
		pthread_create(&leader, NULL, leads_and_ends, NULL);
		pthread_create(&worker, NULL, block_once, NULL);
		pthread_join(leader, &told);
		assert_ptr_equal(told, subscriber);
		pthread_join(worker, NULL);
		/* Here is the next leader. */
		assert_true(is_told(60000));
		assert_int_equal(umt_next(subscriber, &event), 1);
		assert_int_equal(event.kind, UMT_IDLE);
		while (umt_next(subscriber, &event) == 1)
			;
	}
	umt_close(subscriber);
}

ON_EACH_BACKEND(leaders_may_end)

/* ---- the first thread of the process ---- */

static void *goes_on_alone(void *unused)
{
	char state[256];
	int i;

	/* Its state is then that of a dead thread. */
	for (i = 0; i < 20000; i++) {
		FILE *file = fopen("/proc/self/stat", "r");
		bool dead = file && fgets(state, sizeof(state), file) &&
			    strstr(state, ") Z ");

		if (file)
			fclose(file);
		if (dead)
			break;
		nap_us(1000);
	}
	ktest_check(i < 20000);
	ktest_check(umt_thread_add(subscriber) == 0);
	for (i = 0; i < 20; i++)
		block_us(200);
	ktest_check(holds_soon(sums_of(subscriber).sleeps >= 10));
	ktest_check(holds_soon(ready_of(subscriber) == 1));
	ktest_check(umt_thread_remove(subscriber) == 0);
	ktest_check(holds_soon(!ready_of(subscriber)));
	umt_close(subscriber);
	_exit(0);
}

static int ends_its_first_thread(void *backend)
{
	struct umt_options options = { .size = sizeof(options),
				       .backend = *(unsigned *)backend };
	pthread_t thread;

	ktest_check(umt_open(&subscriber, &options) == 0);
	ktest_check(umt_thread_add(subscriber) == 0);
	ktest_check(pthread_create(&thread, NULL, goes_on_alone, NULL) == 0);
	pthread_exit(NULL);
}

static void the_first_thread_may_end(unsigned backend)
{
	umt_close(subscriber_of(backend, 0));
	assert_int_equal(ktest_in_child(ends_its_first_thread, &backend), 0);
}

ON_EACH_BACKEND(the_first_thread_may_end)

KTEST_MAIN(KTEST_EACH(numbers_are_given_anew), KTEST_EACH(leaders_may_end),
	   KTEST_EACH(the_first_thread_may_end))
