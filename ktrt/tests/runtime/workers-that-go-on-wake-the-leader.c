/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The leader sleeps when all workers have waited for long.  A worker that then
 * goes on with its task wakes it, so that tasks which block on what only other
 * tasks can bring end as they do at any time.
 */
#include "support/runs.h"

#include <semaphore.h>
#include <time.h>

/* The leader has long been asleep by then. */
#define SLEEP_US 400000

static struct ktrt_task *waiting;
static sem_t brought;

/* Complete once somebody outside says so. */
static int wait_for_event(void *arg)
{
	int error = ktrt_events_add(1);

	set(waiting, ktrt_self());
	return error;
}

static int bring(void *arg)
{
	return sem_post(&brought) ? -errno : 0;
}

/* Sleeps with its core idle, goes on, and blocks until another task ran. */
static int sleep_then_block(void *arg)
{
	struct timespec until;
	int error = ktrt_spawn(wait_for_event, NULL);

	if (!error)
		error = ktrt_wait();
	for (int i = 0; i < 8 && !error; i++)
		error = ktrt_spawn(bring, NULL);
	if (error)
		return error;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	for (int i = 0; i < 8; i++)
		if (sem_timedwait(&brought, &until))
			return -errno;
	return 0;
}

static void blocked_after_sleep(void)
{
	struct ktrt_group *group;
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	set(waiting, NULL);
	assert_int_equal(ktrt_group_new(&group), 0);
	attr.group = group;
	assert_int_equal(ktrt_spawn_attr(sleep_then_block, NULL, &attr), 0);
	assert_true(holds_soon(get(waiting)));
	nap_us(SLEEP_US);
	ktrt_events_done(get(waiting), 1);
	assert_int_equal(ktrt_group_wait(group), 0);
	ktrt_group_free(group);
}

static void in_all_ways(void **state)
{
	assert_int_equal(sem_init(&brought, 0, 0), 0);
	in_each_way(blocked_after_sleep);
	sem_destroy(&brought);
}

KTEST_MAIN(KTEST(in_all_ways))
