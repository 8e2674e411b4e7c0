/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A code that a process has when it forks stands for its object in the child too,
 * even if another thread makes a code just then and the table grows for that: the fork
 * waits until it has grown.
 */
#include <stdlib.h>

static void *grow_slowly(void *old, size_t size);

#define realloc grow_slowly
#include "runtime/error_codes.c"
#undef realloc

#include "support/runs.h"

#include <pthread.h>

/* So many fill the table; the next one makes it grow. */
#define FULL 16
/* Of a fork that does not wait, to go on while the table grows. */
#define GROW_US 100000

static char objects[FULL + 1];
static int codes[FULL + 1];
static int grows, grown; /* the table */
static int fork_begins, forks_half_grown;

/* What is left of the old table is of no use to anybody. */
static void *grow_slowly(void *old, size_t size)
{
	char *table = malloc(size);

	if (!old || !table)
		return table;
	memcpy(table, old, size / 2);
	memset(old, 0x5a, size / 2);
	free(old);
	set(grows, 1);
	(void)holds_soon(get(fork_begins));
	nap_us(GROW_US);
	set(grown, 1);
	return table;
}

/* Handlers of a fork: before those of the runtime, and behind them. */
static void begin_fork(void)
{
	set(fork_begins, 1);
}

static void see_table(void)
{
	set(forks_half_grown, !get(grown));
}

static void drop_nothing(void *object)
{
}

static void *make_one(void *unused)
{
	codes[FULL] = ktrt_code_new("test", &objects[FULL], drop_nothing);
	return NULL;
}

static int take_all(void *unused)
{
	for (int i = 0; i < FULL; i++)
		ktest_check(ktrt_code_take(codes[i], "test") == &objects[i]);
	return 0;
}

static void forked_as_the_table_grows(void **state)
{
	pthread_t thread;

	if (KTEST_TSAN)
		ktest_skip("thread sanitizer: the thread leaks in the child");
	/* The last to be registered is called first; the runtime's are from its
	 * first start on. */
	assert_int_equal(pthread_atfork(see_table, NULL, NULL), 0);
	start_way(&all_ways[2]);
	assert_int_equal(ktrt_stop(), 0);
	assert_int_equal(pthread_atfork(begin_fork, NULL, NULL), 0);
	for (int i = 0; i < FULL; i++) {
		codes[i] = ktrt_code_new("test", &objects[i], drop_nothing);
		assert_true(codes[i] > 0);
	}
	assert_int_equal(pthread_create(&thread, NULL, make_one, NULL), 0);
	assert_true(holds_soon(get(grows)));
	assert_int_equal(ktest_in_child(take_all, NULL), 0);
	assert_false(get(forks_half_grown));
	pthread_join(thread, NULL);
	assert_int_equal(take_all(NULL), 0);
	assert_ptr_equal(ktrt_code_take(codes[FULL], "test"), &objects[FULL]);
	free(code_entries);
}

KTEST_MAIN(KTEST(forked_as_the_table_grows))
