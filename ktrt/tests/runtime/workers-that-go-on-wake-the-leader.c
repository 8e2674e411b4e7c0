/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The leader sleeps when all workers have waited for long.  A worker that then
 * goes on with its task wakes it, so that tasks which block on what only other
 * tasks can bring end as they do at any time.
 */
#include "support/runs.h"

#include <poll.h>
#include <unistd.h>

/* The leader has long been asleep by then. */
#define SLEEP_US 400000
#define WAIT_MS 60000

static struct ktrt_task *waiting;
static int ends[2]; /* of a pipe */

/* Complete once somebody outside says so. */
static int wait_for_event(void *arg)
{
	int error = ktrt_events_add(1);

	set(waiting, ktrt_self());
	return error;
}

static int bring_byte(void *arg)
{
	return write(ends[1], "x", 1) == 1 ? 0 : -EIO;
}

/* In one wait: each further one would be another occasion to be noticed.  Not by a
 * clock that somebody may set. */
static int block_until_brought(void)
{
	struct pollfd fd = { .fd = ends[0], .events = POLLIN };
	char byte;

	if (poll(&fd, 1, WAIT_MS) != 1)
		return -ETIMEDOUT;
	return read(ends[0], &byte, 1) == 1 ? 0 : -EIO;
}

/* Sleeps with its core idle, goes on, and blocks until another task ran. */
static int sleep_then_block(void *arg)
{
	int error = ktrt_spawn(wait_for_event, NULL);

	if (!error)
		error = ktrt_wait();
	for (int i = 0; i < 8 && !error; i++)
		error = ktrt_spawn(bring_byte, NULL);
	for (int i = 0; i < 8 && !error; i++)
		error = block_until_brought();
	return error;
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
	assert_int_equal(pipe(ends), 0);
	in_each_way(blocked_after_sleep);
	close(ends[0]);
	close(ends[1]);
}

KTEST_MAIN(KTEST(in_all_ways))
