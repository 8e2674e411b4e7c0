/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whoever asks how many permits are used is told of one moment, and never of more
 * than the limit: a permit that goes from one helper to another is counted once,
 * and so is a helper that ends its chunk after its permit went to another.
 */
#define ONE_PERMIT_USER 65528u
#include "support/onepermit.h"
#include "syscalls.h"

#include <pthread.h>

#include "core/deps.h"

/* Threads that live. */
#define FIRST 1u
#define SECOND ((uint32_t)getppid())

static unsigned permits_in_use(void)
{
	struct ktask_permits_info info;

	ktask_jobs(NULL, 0, &info);
	return info.used;
}

/* The first helper yielded and left; the second works beyond the limit. */
static int leave_late(void *arg)
{
	one_permit();
	ktest_check(permits_take(FIRST) == 0);
	permits_yield(0, FIRST);
	ktest_check(permits_take(SECOND) == 1);
	permits_put(0);
	ktest_check(permits_in_use() == 1);
	ktest_check(permits_must_leave(1, SECOND));
	ktest_check(permits_take(FIRST) == 0);
	ktest_check(permits_in_use() == 1);
	permits_put(1);
	ktest_check(permits_in_use() == 1);
	permits_put(0);
	ktest_check(permits_in_use() == 0);
	return 0;
}

static void helpers_that_must_leave_count_no_more(void **state)
{
	assert_int_equal(ktest_in_child(leave_late, NULL), 0);
}

/* While a look asks the kernel about the first helper, its permit moves on. */
static bool move_permit(long number, const long args[6], long *result)
{
	if (number != SYS_sched_getattr || (uint32_t)args[0] != FIRST)
		return false;
	syscalls_answer = NULL;
	permits_yield(0, FIRST);
	ktest_check(permits_take(SECOND) == 1);
	return false;
}

static int look_while_moving(void *arg)
{
	one_permit();
	ktest_check(permits_take(FIRST) == 0);
	syscalls_answer = move_permit;
	ktest_check(permits_in_use() == 1);
	ktest_check(!syscalls_answer);
	ktest_check(permits_in_use() == 1);
	permits_put(1);
	ktest_check(permits_in_use() == 0);
	permits_put(0);
	return 0;
}

static void a_permit_that_moves_is_counted_once(void **state)
{
	assert_int_equal(ktest_in_child(look_while_moving, NULL), 0);
}

/* ---- stress ---- */

#define LOOKS 20000
#define MOVES 10000

static uint32_t stop, nr_moves;

/* The permit goes round: one helper yields, another takes over. */
static void *move_for_ever(void *arg)
{
	while (!kt_load(&stop)) {
		ktest_check(permits_take(FIRST) == 0);
		permits_yield(0, FIRST);
		ktest_check(permits_take(SECOND) == 1);
		permits_put(0);
		ktest_check(permits_take(FIRST) == 0);
		permits_put(1);
		permits_put(0);
		kt_add(&nr_moves, 1);
	}
	return NULL;
}

static int look_often(void *arg)
{
	pthread_t thread;

	one_permit();
	ktest_check(!pthread_create(&thread, NULL, move_for_ever, NULL));
	for (int i = 0; i < LOOKS || kt_load(&nr_moves) < MOVES; i++)
		ktest_check(permits_used() <= 1);
	kt_store(&stop, 1);
	pthread_join(thread, NULL);
	ktest_check(permits_used() == 0);
	return 0;
}

static void no_look_sees_more_than_the_limit(void **state)
{
	assert_int_equal(ktest_in_child(look_often, NULL), 0);
}

static int end(void **state)
{
	return remove_registry();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(helpers_that_must_leave_count_no_more),
		KTEST(a_permit_that_moves_is_counted_once),
		KTEST(no_look_sees_more_than_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
