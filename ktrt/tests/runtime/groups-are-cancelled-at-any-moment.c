/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Thousands of groups at a time, each cancelled by another thread at some moment or not
 * at all: a task runs once or not at all, and not if it was made afterwards; a group that
 * was not cancelled is done wholly.  Groups are waited for, or only freed.
 */
#include "support/runs.h"

#include <pthread.h>
#include <sched.h>

#define GROUPS (KTEST_TSAN || KTEST_ASAN ? 300u : 3000u)
#define TASKS 8

struct cell {
	unsigned which; /* group */
	unsigned at;
};

struct made {
	struct ktrt_group *group;
	/* Two each: it, and its child; and one that is made after the cancel. */
	unsigned ran[TASKS + 1];
	unsigned to_cancel;
	int datum;
};

static struct made all[GROUPS];
static unsigned next_made, stop;
static uint64_t random_state;

static int do_child(void *arg)
{
	const struct cell *cell = arg;

	more(all[cell->which].ran[cell->at]);
	return 0;
}

static int do_task(void *arg)
{
	const struct cell *cell = arg;

	more(all[cell->which].ran[cell->at]);
	return ktrt_spawn_copy(do_child, cell, sizeof(*cell));
}

static int spawn_task(struct made *made, unsigned which, unsigned at)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &made->datum, 0,
				at % 2 ? KTRT_IN : KTRT_INOUT };
	struct cell cell = { which, at };

	attr.group = made->group;
	attr.arg_bytes = sizeof(cell);
	attr.deps = &dep;
	attr.nr_deps = at % 3 != 0;
	return ktrt_spawn_attr(do_task, &cell, &attr);
}

/* Every other one, a moment after it was made, before or after its end. */
static void *cancel_some(void *arg)
{
	uint64_t random = *(uint64_t *)arg;
	unsigned at = 0;

	while (!get(stop)) {
		if (at >= get(next_made)) {
			sched_yield();
			continue;
		}
		for (uint64_t n = ktest_random_below(&random, 2000); n; n--)
			__asm__ volatile("" ::: "memory");
		if (all[at].to_cancel)
			ktrt_group_cancel(all[at].group);
		at++;
	}
	return NULL;
}

static void make_groups(void)
{
	for (unsigned i = 0; i < GROUPS; i++) {
		struct made *made = &all[i];

		memset(made, 0, sizeof(*made));
		made->to_cancel = ktest_random(&random_state) & 1;
		assert_int_equal(ktrt_group_new(&made->group), 0);
		set(next_made, i + 1);
		for (unsigned j = 0; j < TASKS; j++)
			assert_int_equal(spawn_task(made, i, j), 0);
		if (made->to_cancel && ktest_random(&random_state) & 1) {
			ktrt_group_cancel(made->group);
			assert_int_equal(spawn_task(made, i, TASKS), 0);
		}
	}
}

static void check_group(const struct made *made, int code)
{
	assert_int_equal(get(made->ran[TASKS]), 0);
	for (unsigned i = 0; i < TASKS; i++) {
		assert_true(get(made->ran[i]) <= 2);
		if (!made->to_cancel)
			assert_int_equal(get(made->ran[i]), 2);
	}
	assert_true(!code || (code == -ECANCELED && made->to_cancel));
}

static void end_groups(void)
{
	for (unsigned i = 0; i < GROUPS; i++) {
		int code = i % 5 ? ktrt_group_wait(all[i].group) : 0;

		if (i % 5)
			check_group(&all[i], code);
	}
}

static void groups_at_random(void)
{
	uint64_t seed = ktest_random(&random_state);
	pthread_t thread;

	set(next_made, 0);
	set(stop, 0);
	assert_int_equal(pthread_create(&thread, NULL, cancel_some, &seed), 0);
	make_groups();
	end_groups();
	set(stop, 1);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < GROUPS; i++)
		ktrt_group_free(all[i].group);
	for (unsigned i = 0; i < GROUPS; i++)
		check_group(&all[i], 0);
	/* Codes of groups are theirs alone. */
	assert_int_equal(ktrt_wait(), 0);
}

static void cancelled_or_not(void **state)
{
	random_state = ktest_seed();
	in_each_way(groups_at_random);
}

KTEST_MAIN(KTEST(cancelled_or_not))
