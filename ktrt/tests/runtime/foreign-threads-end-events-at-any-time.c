/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads that are none of the runtime's end the events of tasks before, while and
 * after the tasks' functions return.  Whoever waited for that may end the runtime
 * at once, and nothing of it is used from then on.
 */
#include "support/runs.h"

#include <pthread.h>

#define ROUNDS 60
#define TASKS 40
#define ENDERS 2

static struct ktrt_task *posted[TASKS];
static unsigned nr_posted, nr_taken, over;
static unsigned long after;

/* Each task to one of them. */
static struct ktrt_task *take_posted(void)
{
	unsigned at = get(nr_taken);
	struct ktrt_task *task;

	if (at >= get(nr_posted) || at >= TASKS || !get(posted[at]) ||
	    !__atomic_compare_exchange_n(&nr_taken, &at, at + 1, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return NULL;
	/* What was read before may be of another round. */
	while (!(task = get(posted[at])))
		sched_yield();
	return task;
}

static void *end_events(void *unused)
{
	while (!get(over)) {
		struct ktrt_task *task = take_posted();

		if (!task) {
			sched_yield();
			continue;
		}
		/* One of three is ended in two steps. */
		if ((uintptr_t)task / 64 % 3 == 0)
			ktrt_events_done(task, 1);
		else
			ktrt_events_done(task, 0);
		ktrt_events_done(task, (uintptr_t)task / 64 % 3 == 0 ? 1 : 2);
	}
	return NULL;
}

/* Its function returns at once, or when others have gone on for a while. */
static int have_events(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;

	if (ktrt_events_add(2))
		return -EINVAL;
	set(posted[more(nr_posted) - 1], ktrt_self());
	for (unsigned i = 0; i < number % 4; i++)
		sched_yield();
	return 0;
}

static int come_after(void *arg)
{
	more(after);
	return 0;
}

/* Half of them have a successor, which the foreign thread makes ready. */
static void make_tasks(struct ktrt_group *group)
{
	struct ktrt_dep dep = { NULL, 0, KTRT_INOUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.group = group;
	for (int i = 0; i < TASKS; i++) {
		dep.addr = &posted[i];
		assert_int_equal(ktrt_spawn_attr(have_events,
						 (void *)(uintptr_t)i, &attr),
				 0);
		if (i % 2)
			assert_int_equal(
				ktrt_spawn_attr(come_after, NULL, &attr), 0);
	}
}

static int make_inside(void *arg)
{
	make_tasks(NULL);
	return 0;
}

static void wait_in_some_way(int round)
{
	struct ktrt_group *group = NULL;

	if (round % 3 == 0) {
		assert_int_equal(ktrt_group_new(&group), 0);
		make_tasks(group);
		assert_int_equal(ktrt_group_wait(group), 0);
		ktrt_group_free(group);
	} else if (round % 3 == 1) {
		make_tasks(NULL);
	} else {
		assert_int_equal(ktrt_spawn(make_inside, NULL), 0);
	}
}

static void do_round(int round)
{
	const struct way *way = &all_ways[round % 8 ? 2 + round % 2 : 0];
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	for (int i = 0; i < TASKS; i++)
		set(posted[i], NULL);
	set(after, 0);
	set(nr_taken, 0);
	set(nr_posted, 0);
	options.workers = way->workers;
	options.flags = way->flags;
	assert_int_equal(ktrt_start(&options), 0);
	wait_in_some_way(round);
	/* Waits for what is left. */
	assert_int_equal(ktrt_stop(), 0);
	assert_int_equal(get(nr_taken), TASKS);
	assert_int_equal(get(after), TASKS / 2);
}

static void at_any_time(void **state)
{
	pthread_t threads[ENDERS];

	for (int i = 0; i < ENDERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, end_events, NULL), 0);
	for (int round = 0; round < ROUNDS; round++)
		do_round(round);
	set(over, 1);
	for (int i = 0; i < ENDERS; i++)
		pthread_join(threads[i], NULL);
}

KTEST_MAIN(KTEST(at_any_time))
