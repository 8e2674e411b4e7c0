/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * exit() while a job runs, from a chunk of the caller, from one of a helper,
 * or from a thread that has no part in it: the process ends with the status
 * given, and exit handlers may still run jobs.
 */
#include "ktest.h"
#include "jobs.h"

#include <pthread.h>

#define STATUS 7
#define NO_HELPER 77
#define NR_EXITS (KTEST_ASAN || KTEST_TSAN ? 40 : 100)
#define SECONDS 60

static uint64_t random_state;

static int exit_with_status(void *arg)
{
	exit(STATUS);
}

static int exit_in_chunk_of_caller(void *arg)
{
	struct once once = { .func = exit_with_status };

	once_run(&once);
	return 1;
}

static int exit_in_chunk_of_helper(void *arg)
{
	struct once once = { .func = exit_with_status, .in_helper = true };

	return once_run(&once) || once_begun(&once) ? 1 : NO_HELPER;
}

static void *leave_soon(void *arg)
{
	usleep((useconds_t)(uintptr_t)arg);
	exit(STATUS);
}

static int exit_in_another_thread(void *arg)
{
	pthread_t thread;

	ktest_check(job_works());
	ktest_check(!pthread_create(&thread, NULL, leave_soon, arg));
	ktest_check(!pthread_detach(thread));
	for (;;)
		ktest_check(job_works());
}

static void work_once_more(void)
{
	ktest_check(job_works());
}

static int exit_in_caller_and_work_on(void *arg)
{
	ktest_check(!atexit(work_once_more));
	return exit_in_chunk_of_caller(arg);
}

static int exit_in_helper_and_work_on(void *arg)
{
	ktest_check(!atexit(work_once_more));
	return exit_in_chunk_of_helper(arg);
}

static int exit_in_another_and_work_on(void *arg)
{
	ktest_check(!atexit(work_once_more));
	return exit_in_another_thread(arg);
}

/* Each in a child of a process that has had no job, so that the first job,
 * which starts the helpers, is the one that is left. */
static void exits_often(int (*func)(void *arg))
{
	for (int i = 0; i < NR_EXITS; i++) {
		uint64_t us = ktest_random_below(&random_state, 3000);
		int status = ktest_in_child_for(func, (void *)(uintptr_t)us,
						SECONDS);

		if (status == NO_HELPER << 8)
			ktest_skip("no helper came");
		assert_int_equal(status, STATUS << 8);
	}
}

static void from_a_chunk_of_the_caller(void **state)
{
	exits_often(exit_in_chunk_of_caller);
	exits_often(exit_in_caller_and_work_on);
}

static void from_a_chunk_of_a_helper(void **state)
{
	exits_often(exit_in_chunk_of_helper);
	exits_often(exit_in_helper_and_work_on);
}

static void from_another_thread(void **state)
{
	exits_often(exit_in_another_thread);
	exits_often(exit_in_another_and_work_on);
}

static int seed_random(void **state)
{
	random_state = ktest_seed();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(from_a_chunk_of_the_caller),
		KTEST(from_a_chunk_of_a_helper),
		KTEST(from_another_thread),
	};

	return cmocka_run_group_tests(tests, seed_random, NULL);
}
