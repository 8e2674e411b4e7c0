/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A thread that is cancelled while it is in the library ends, at once or later,
 * and whoever comes next is served.
 */
#include "support/subscribers.h"

#include <pthread.h>
#include <sys/wait.h>

#define NOT_HERE 77

static unsigned by;

static struct umt *open_subscriber(void)
{
	struct umt_options options = { .size = sizeof(options), .backend = by };
	struct umt *subscriber = NULL;

	return umt_open(&subscriber, &options) ? NULL : subscriber;
}

/* From here on it ends where it next could wait. */
static void cancel_self(void)
{
	ktest_check(pthread_cancel(pthread_self()) == 0);
}

static void *cancel_opening(void *unused)
{
	cancel_self();
	umt_close(open_subscriber());
	return NULL;
}

static void *asks_for_a_descriptor(void *subscriber)
{
	cancel_self();
	umt_core_fd(subscriber, 0);
	return NULL;
}

static void *comes_and_goes(void *subscriber)
{
	ktest_check(umt_thread_add(subscriber) == 0);
	cancel_self();
	umt_block_begin();
	umt_block_end();
	umt_thread_remove(subscriber);
	return NULL;
}

static void *cancel_enabling(void *unused)
{
	cancel_self();
	umt_enable(NULL, 0);
	umt_thread_ctrl(1);
	umt_disable();
	return NULL;
}

static void in_a_thread(void *(*func)(void *arg), void *arg)
{
	pthread_t thread;

	ktest_check(pthread_create(&thread, NULL, func, arg) == 0);
	ktest_check(pthread_join(thread, NULL) == 0);
}

static int cancel_calls(void *unused)
{
	struct umt *subscriber = open_subscriber();

	if (!subscriber)
		return NOT_HERE;
	umt_want(subscriber, 1);
	in_a_thread(cancel_opening, NULL);
	in_a_thread(asks_for_a_descriptor, subscriber);
	in_a_thread(comes_and_goes, subscriber);
	in_a_thread(cancel_enabling, NULL);
	ktest_check(umt_thread_add(subscriber) == 0);
	ktest_check(umt_thread_remove(subscriber) == 0);
	umt_close(subscriber);
	subscriber = open_subscriber();
	ktest_check(subscriber != NULL);
	umt_close(subscriber);
	return 0;
}

/* Forked before there are threads of any backend. */
static void others_are_served(unsigned backend)
{
	const char *name = umt_backend_name((int)backend);
	struct umt_backends info = { .size = sizeof(info) };
	int status;

	by = backend;
	setenv("UMT_BACKEND", name, 1);
	status = ktest_in_child(cancel_calls, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE) {
		umt_info(&info);
		ktest_skip("no %s here: %s", name, info.why[backend]);
	}
	assert_int_equal(status, 0);
}

ON_EACH_BACKEND(others_are_served)

KTEST_MAIN(KTEST_EACH(others_are_served))
