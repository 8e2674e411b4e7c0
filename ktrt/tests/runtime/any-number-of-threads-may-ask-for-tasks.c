/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * More threads than can be attached have tasks and loops done at once: a call waits until
 * another one has ended, and fails only if the runtime ends first.
 */
#include "support/runs.h"

#include <pthread.h>

#define THREADS 150

static unsigned long ran, wrong;

static int work_slowly(void *arg)
{
	nap_us(20000);
	more(ran);
	return 0;
}

static int do_range(size_t first, size_t end, void *arg)
{
	return work_slowly(NULL);
}

static int add_range(size_t first, size_t end, void *value, void *arg)
{
	*(size_t *)value += end - first;
	return work_slowly(NULL);
}

static int combine_sums(void *into, void *from, void *arg)
{
	*(size_t *)into += *(size_t *)from;
	return 0;
}

static int ask_once(unsigned way)
{
	size_t sum = 0;
	int code;

	if (way == 0)
		return ktrt_run(work_slowly, NULL);
	if (way == 1)
		return ktrt_for(0, 1, 1, do_range, NULL);
	code = ktrt_reduce(0, 1, 1, add_range, combine_sums, &sum, sizeof(sum),
			   NULL);
	return code ? code : sum == 1 ? 0 : -EIO;
}

static void *ask_in_thread(void *number)
{
	if (ask_once((unsigned)(uintptr_t)number % 3))
		more(wrong);
	return NULL;
}

/* The runtime may have ended. */
static void *ask_late(void *number)
{
	int code = ask_once((unsigned)(uintptr_t)number % 3);

	if (code && code != -ESRCH)
		more(wrong);
	return NULL;
}

static void begin_threads(pthread_t *threads, void *(*func)(void *))
{
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, func, (void *)i), 0);
}

static void join_threads(const pthread_t *threads)
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void start_two(void)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = 2;
	options.flags = KTRT_NO_UMT;
	assert_int_equal(ktrt_start(&options), 0);
	set(ran, 0);
	set(wrong, 0);
}

static void all_are_served(void **state)
{
	pthread_t threads[THREADS];

	start_two();
	begin_threads(threads, ask_in_thread);
	join_threads(threads);
	assert_int_equal(get(wrong), 0);
	assert_int_equal(get(ran), THREADS);
	assert_int_equal(ktrt_stop(), 0);
}

/* Those that wait come back. */
static void the_end_is_told(void **state)
{
	pthread_t threads[THREADS];
	int error;

	for (int i = 0; i < 10; i++) {
		start_two();
		begin_threads(threads, ask_late);
		while ((error = ktrt_stop()) == -EBUSY)
			nap_us(10);
		assert_int_equal(error, 0);
		join_threads(threads);
		assert_int_equal(get(wrong), 0);
	}
}

KTEST_MAIN(KTEST(all_are_served), KTEST(the_end_is_told))
