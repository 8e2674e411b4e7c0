/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whoever asks how many slots are used is told of one moment, and never of more
 * than the limit: a slot that goes from one helper to another is counted once,
 * and so is a helper that ends its chunk after its slot went to another.
 */
#define ONE_SLOT_USER 65528u
#include "support/oneslot.h"
#include "syscalls.h"

#include <pthread.h>

#include "core/deps.h"

/* Threads that live. */
#define FIRST 1u
#define SECOND ((uint32_t)getppid())

static unsigned slots_in_use(void)
{
	struct ktask_slots_info info;

	ktask_jobs(NULL, 0, &info);
	return info.used;
}

/* The first helper stood aside and left; the second works beyond the limit. */
static int leave_late(void *arg)
{
	one_slot();
	ktest_check(slots_take(FIRST) == 0);
	slots_stand_aside(0, FIRST);
	ktest_check(slots_take(SECOND) == 1);
	slots_put(0);
	ktest_check(slots_in_use() == 1);
	ktest_check(slots_must_leave(1, SECOND));
	ktest_check(slots_take(FIRST) == 0);
	ktest_check(slots_in_use() == 1);
	slots_put(1);
	ktest_check(slots_in_use() == 1);
	slots_put(0);
	ktest_check(slots_in_use() == 0);
	return 0;
}

static void helpers_that_must_leave_count_no_more(void **state)
{
	assert_int_equal(ktest_in_child(leave_late, NULL), 0);
}

/* While a look asks the kernel about the first helper, its slot moves on. */
static bool move_slot(long number, const long args[6], long *result)
{
	if (number != SYS_sched_getattr || (uint32_t)args[0] != FIRST)
		return false;
	syscalls_answer = NULL;
	slots_stand_aside(0, FIRST);
	ktest_check(slots_take(SECOND) == 1);
	return false;
}

static int look_while_moving(void *arg)
{
	one_slot();
	ktest_check(slots_take(FIRST) == 0);
	syscalls_answer = move_slot;
	ktest_check(slots_in_use() == 1);
	ktest_check(!syscalls_answer);
	ktest_check(slots_in_use() == 1);
	slots_put(1);
	ktest_check(slots_in_use() == 0);
	slots_put(0);
	return 0;
}

static void a_slot_that_moves_is_counted_once(void **state)
{
	assert_int_equal(ktest_in_child(look_while_moving, NULL), 0);
}

/* ---- stress ---- */

#define LOOKS 20000
#define MOVES 10000

static uint32_t stop, nr_moves;

/* The slot goes round: somebody stands aside, another takes over. */
static void *move_for_ever(void *arg)
{
	while (!kt_load(&stop)) {
		ktest_check(slots_take(FIRST) == 0);
		slots_stand_aside(0, FIRST);
		ktest_check(slots_take(SECOND) == 1);
		slots_put(0);
		ktest_check(slots_take(FIRST) == 0);
		slots_put(1);
		slots_put(0);
		kt_add(&nr_moves, 1);
	}
	return NULL;
}

static int look_often(void *arg)
{
	pthread_t thread;

	one_slot();
	ktest_check(!pthread_create(&thread, NULL, move_for_ever, NULL));
	for (int i = 0; i < LOOKS || kt_load(&nr_moves) < MOVES; i++)
		ktest_check(slots_used() <= 1);
	kt_store(&stop, 1);
	pthread_join(thread, NULL);
	ktest_check(slots_used() == 0);
	return 0;
}

static void no_look_sees_more_than_the_limit(void **state)
{
	assert_int_equal(ktest_in_child(look_often, NULL), 0);
}

static int end(void **state)
{
	return remove_table();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(helpers_that_must_leave_count_no_more),
		KTEST(a_slot_that_moves_is_counted_once),
		KTEST(no_look_sees_more_than_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
