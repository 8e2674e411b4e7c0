/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The tests rely on tests/support/failalloc.h: what it refuses, what it lets
 * through, what it counts, and that it reaches code inside libktask.a's way
 * of calling (the linker wraps this file's calls in the same manner).
 */
#include "ktest.h"
#include "failalloc.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

/* Keeps the compiler from dropping allocations whose result is unused. */
static void *volatile keep;

static int got_memory(void)
{
	void *memory = malloc(16);
	int got = memory != NULL;

	keep = memory;
	free(memory);
	return got;
}

static void only_the_chosen_one_fails(void **state)
{
	failalloc_arm(2);
	assert_true(got_memory());
	errno = 0;
	assert_false(got_memory());
	assert_int_equal(errno, ENOMEM);
	assert_true(got_memory());
	assert_int_equal(failalloc_seen(), 3);
	assert_int_equal(failalloc_disarm(), 1);
	assert_true(got_memory());
}

static void later_ones_fail_too(void **state)
{
	failalloc_arm_from(2, FAILALLOC_MEMORY);
	assert_true(got_memory());
	assert_false(got_memory());
	assert_false(got_memory());
	assert_int_equal(failalloc_disarm(), 2);
}

static void a_loop_over_all_ends(void **state)
{
	unsigned nth = 0;
	unsigned got;

	do {
		failalloc_arm(++nth);
		got = got_memory() + got_memory() + got_memory();
		assert_int_equal(got, nth <= 3 ? 2 : 3);
	} while (failalloc_disarm());
	assert_int_equal(nth, 4);
}

static void each_way_to_allocate_fails(void **state)
{
	void *memory = NULL;

	failalloc_arm_from(1, FAILALLOC_MEMORY);
	assert_null(calloc(1, 16));
	assert_null(realloc(NULL, 16));
	assert_null(aligned_alloc(64, 64));
	assert_int_equal(posix_memalign(&memory, 64, 64), ENOMEM);
	assert_int_equal(failalloc_disarm(), 4);
}

static void *do_nothing(void *arg)
{
	return arg;
}

static void mappings_and_threads_fail(void **state)
{
	pthread_t thread;
	void *map;

	failalloc_arm_from(1, FAILALLOC_MMAP | FAILALLOC_THREAD);
	errno = 0;
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_equal(map, MAP_FAILED);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(pthread_create(&thread, NULL, do_nothing, NULL),
			 EAGAIN);
	assert_true(got_memory());
	assert_int_equal(failalloc_seen(), 2);
	assert_int_equal(failalloc_disarm(), 2);

	assert_int_equal(pthread_create(&thread, NULL, do_nothing, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

KTEST_MAIN(KTEST(only_the_chosen_one_fails), KTEST(later_ones_fail_too),
	   KTEST(a_loop_over_all_ends), KTEST(each_way_to_allocate_fails),
	   KTEST(mappings_and_threads_fail))
