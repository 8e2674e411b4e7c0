/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A runtime whose only worker can be blocked, so that nobody but the attached thread does
 * what that waits for; and a watchdog that frees the worker if it is not done in time.
 */
#ifndef RUNTIME_TEST_BLOCKED_WORKER_H
#define RUNTIME_TEST_BLOCKED_WORKER_H

#include "attached_thread.h"

#include <pthread.h>
#include <unistd.h>

/* Nobody else frees the worker sooner. */
#define LATE_NS 30000000000
/* On a busy machine a function may be judged long at any time. */
#define TRIES 20

static int pipe_ends[2];
static pthread_t attached_thread;
/* What was done, and of that what the attached thread did. */
static unsigned long nr_done, nr_here;

static inline void count_done(void)
{
	more(nr_done);
	if (pthread_equal(pthread_self(), attached_thread))
		more(nr_here);
}

static inline int block_until_written(void *arg)
{
	char byte;

	return read(pipe_ends[0], &byte, 1) == 1 ? 0 : -EIO;
}

static inline void start_with_one(unsigned flags)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = options.max_threads = 1;
	options.flags = flags;
	assert_int_equal(pipe(pipe_ends), 0);
	assert_int_equal(ktrt_start(&options), 0);
	attached_thread = pthread_self();
	stay_on_a_core();
}

static inline void stop_with_one(void)
{
	assert_int_equal(ktrt_stop(), 0);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

/* Frees the worker if that is not done in time, or if the function counts as long now, because
 * the attached thread lost its CPU in two calls. */
static pthread_t watching_thread;
static ktrt_func watched_func;
static unsigned is_over, was_late, was_long;

static inline void *free_worker_if_late(void *arg)
{
	uint64_t until = ktest_now_ns() + LATE_NS;

	while (!get(is_over) && func_kind(watched_func) != FUNC_LONG &&
	       ktest_now_ns() < until)
		nap_us(1000);
	set(was_long, func_kind(watched_func) == FUNC_LONG);
	set(was_late, !get(is_over) && !was_long);
	ktest_check(write(pipe_ends[1], "x", 1) == 1);
	return NULL;
}

static inline void block_the_worker(ktrt_func func, void *(*free_it)(void *))
{
	watched_func = func;
	set(is_over, 0);
	set(was_late, 0);
	set(was_long, 0);
	assert_int_equal(ktrt_spawn(block_until_written, NULL), 0);
	assert_true(holds_soon(!sched_work_visible()));
	set(nr_done, 0);
	set(nr_here, 0);
	assert_int_equal(pthread_create(&watching_thread, NULL, free_it, NULL),
			 0);
}

/* Return: false if the function counted as long. */
static inline bool check_all_here(unsigned long wanted)
{
	set(is_over, 1);
	assert_int_equal(pthread_join(watching_thread, NULL), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(was_late), 0);
	assert_int_equal(get(nr_done), wanted);
	assert_int_equal(ktrt_worker(), -1);
	if (get(was_long))
		return false;
	assert_int_equal(get(nr_here), wanted);
	return true;
}

#endif /* RUNTIME_TEST_BLOCKED_WORKER_H */
