/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks on two data, for tests of what is named weakly or released early: how often each
 * ran, and one that keeps its data until the test lets it complete.
 */
#ifndef KTRT_TESTS_WEAK_DATA_H
#define KTRT_TESTS_WEAK_DATA_H

#include "runs.h"

static int datum_a, datum_b;
static unsigned nr_ran[8];
static struct ktrt_task *held_task; /* has an event that the test ends */
static struct ktrt_group *task_group;

static inline int spawn_with(ktrt_func func, void *arg,
			     const struct ktrt_dep *deps, size_t nr,
			     unsigned flags)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.nr_deps = nr;
	attr.flags = flags;
	attr.group = task_group;
	return ktrt_spawn_attr(func, arg, &attr);
}

static inline int spawn_on(ktrt_func func, void *arg, void *datum,
			   unsigned mode)
{
	struct ktrt_dep dep = { datum, 0, mode };

	return spawn_with(func, arg, &dep, 1, 0);
}

static inline int note_run(void *arg)
{
	more(*(unsigned *)arg);
	return 0;
}

/* It is not complete until release_holder(). */
static inline int hold_data(void *arg)
{
	int error = ktrt_events_add(1);

	if (!error)
		set(held_task, ktrt_self());
	return error;
}

static inline void release_holder(void)
{
	while (!get(held_task))
		nap_us(200);
	ktrt_events_done(held_task, 1);
	set(held_task, NULL);
}

/* Until tasks that were made so far are done with it. */
static inline void wait_for_data(void *datum)
{
	struct ktrt_dep dep = { datum, 0, KTRT_INOUT };

	assert_int_equal(ktrt_wait_for(&dep, 1), 0);
}

static inline void begin_case(void)
{
	memset(nr_ran, 0, sizeof(nr_ran));
	set(held_task, NULL);
	task_group = NULL;
}

/* Once in its body, and in a child that uses what the task named weakly. */
static inline int note_and_use(void *arg)
{
	note_run(&nr_ran[0]);
	return spawn_on(note_run, &nr_ran[1], &datum_a, KTRT_INOUT);
}

#endif /* KTRT_TESTS_WEAK_DATA_H */
