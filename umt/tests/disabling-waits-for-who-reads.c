/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * umt_disable() may come while other threads read counts, or monitor
 * themselves: they are told, before or after, that nothing is enabled.
 */
#include "support/subscribers.h"

#include <pthread.h>

#define TURNS 100

static int ended;

/* The first thing that is not as it should be. */
static int wrong;

static void note_right(bool right, int what)
{
	if (!right)
		__atomic_store_n(&wrong, what, __ATOMIC_RELAXED);
}

static void *read_often(void *unused)
{
	struct umt_counts counts;
	int said;

	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
		said = umt_core_read(0, &counts);
		note_right(said == 0 || said == -ENODEV, said);
	}
	return NULL;
}

static void *comes_and_goes(void *unused)
{
	int said;

	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
		said = umt_thread_ctrl(1);
		note_right(said == 0 || said == -ENODEV || said == -EEXIST,
			   said);
		said = umt_thread_ctrl(0);
		note_right(said == 0 || said == -ENODEV || said == -ENOENT,
			   said);
	}
	return NULL;
}

static void disabled_beside_readers(void **state)
{
	pthread_t threads[2];
	int turn;

	setenv("UMT_BACKEND", "explicit", 1);
	assert_int_equal(pthread_create(&threads[0], NULL, read_often, NULL),
			 0);
	assert_int_equal(
		pthread_create(&threads[1], NULL, comes_and_goes, NULL), 0);
	for (turn = 0; turn < TURNS; turn++) {
		assert_true(umt_enable(NULL, 0) > 0);
		sched_yield();
		umt_disable();
	}
	__atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(threads[0], NULL), 0);
	assert_int_equal(pthread_join(threads[1], NULL), 0);
	assert_int_equal(wrong, 0);
}

KTEST_MAIN(KTEST(disabled_beside_readers))
