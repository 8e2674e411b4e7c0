/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A code that stands for an object takes it to whoever waits, who owns it then;
 * the objects of codes that nobody gets are let go of, each once.
 */
#include "support/runs.h"

#include "failalloc.h"

#define MANY 1000

static unsigned char dropped[MANY]; /* how often */
static const char kind[] = "mark";

static void drop_object(void *object)
{
	__atomic_add_fetch((unsigned char *)object, 1, __ATOMIC_SEQ_CST);
}

static int fail_with(void *arg)
{
	return ktrt_code_new(kind, arg, drop_object);
}

static unsigned nr_dropped(void)
{
	unsigned nr = 0;

	for (int i = 0; i < MANY; i++) {
		assert_true(get(dropped[i]) <= 1);
		nr += get(dropped[i]);
	}
	return nr;
}

static void forget_drops(void)
{
	memset(dropped, 0, sizeof(dropped));
}

static void spawn_all(struct ktrt_group *group)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.group = group;
	for (int i = 0; i < MANY; i++)
		assert_int_equal(ktrt_spawn_attr(fail_with, &dropped[i], &attr),
				 0);
}

/* All but the one that came. */
static void takes_one(int code)
{
	unsigned char *object = ktrt_code_take(code, kind);

	assert_non_null(object);
	assert_int_equal(*object, 0);
	assert_int_equal(nr_dropped(), MANY - 1);
	assert_null(ktrt_code_take(code, kind));
	ktrt_code_drop(code);
	assert_int_equal(nr_dropped(), MANY - 1);
	forget_drops();
}

static int fail_below(void *arg)
{
	return ktrt_spawn(fail_with, arg);
}

static void wait_for_codes(void)
{
	struct ktrt_group *group;

	forget_drops();
	spawn_all(NULL);
	takes_one(ktrt_wait());
	for (int i = 0; i < MANY; i++)
		assert_int_equal(ktrt_spawn(fail_below, &dropped[i]), 0);
	takes_one(ktrt_wait());
	assert_int_equal(ktrt_group_new(&group), 0);
	spawn_all(group);
	takes_one(ktrt_group_wait(group));
	/* Nobody gets it. */
	spawn_all(group);
	ktrt_group_free(group);
	assert_int_equal(nr_dropped(), MANY);
	assert_int_equal(ktrt_wait(), 0);
}

static void whoever_waits_gets_the_first(void **state)
{
	in_each_way(wait_for_codes);
}

static void runtimes_end_with_them(void **state)
{
	forget_drops();
	assert_int_equal(ktrt_start(NULL), 0);
	spawn_all(NULL);
	takes_one(ktrt_stop());
}

static void others_are_not_touched(void **state)
{
	int code, next;

	forget_drops();
	code = ktrt_code_new(kind, &dropped[0], drop_object);
	assert_true(code >= (int)KTRT_CODE_FIRST);
	assert_null(ktrt_code_take(code, "another"));
	assert_null(ktrt_code_take(code + 1, kind));
	assert_null(ktrt_code_take(7, kind));
	assert_null(ktrt_code_take(-7, kind));
	assert_ptr_equal(ktrt_code_take(code, kind), &dropped[0]);
	/* Its place is used again, by another code. */
	next = ktrt_code_new(kind, &dropped[1], drop_object);
	assert_int_not_equal(next, code);
	assert_null(ktrt_code_take(code, kind));
	ktrt_code_drop(code);
	assert_int_equal(nr_dropped(), 0);
	ktrt_code_drop(next);
	assert_int_equal(get(dropped[1]), 1);
	assert_int_equal(ktrt_code_new(NULL, NULL, drop_object), -EINVAL);
	assert_int_equal(ktrt_code_new(kind, NULL, NULL), -EINVAL);
}

static void without_memory_there_is_none(void **state)
{
	static int codes[MANY];
	int nr = 0;

	failalloc_arm_from(1, FAILALLOC_ALL);
	while (nr < MANY && (codes[nr] = fail_with(&dropped[nr])) >= 0)
		nr++;
	failalloc_disarm();
	assert_true(nr < MANY);
	assert_int_equal(codes[nr], -ENOMEM);
	for (int i = 0; i < nr; i++)
		ktrt_code_drop(codes[i]);
}

KTEST_MAIN(KTEST(whoever_waits_gets_the_first), KTEST(runtimes_end_with_them),
	   KTEST(others_are_not_touched), KTEST(without_memory_there_is_none))
