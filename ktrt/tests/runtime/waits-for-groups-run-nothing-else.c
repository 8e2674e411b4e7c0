/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task that waits for a group, or by ktrt_run(), may have other children, which wait
 * for what it does afterwards.  It does none of these meanwhile.
 */
#include "support/pipe_tasks.h"

#include <pthread.h>
#include <unistd.h>

#define ROUNDS 30
#define OTHERS 100

static int write_one(void)
{
	return write(pipe_ends[1], "x", 1) == 1 ? 0 : -EIO;
}

/* Waits for the group first; @error: what failed before. */
static int let_readers_end(struct ktrt_group *group, int error, int nr_readers)
{
	if (!error)
		error = ktrt_group_wait(group);
	for (int i = 0; i < nr_readers && !error; i++)
		error = write_one();
	ktrt_group_free(group);
	return error ? error : ktrt_wait();
}

/* The task of the group is older, so the other one is the next in the queue. */
static int wait_for_older(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	int error = ktrt_group_new(&attr.group);

	if (!error)
		error = ktrt_spawn_attr(count_task, NULL, &attr);
	if (!error)
		error = ktrt_spawn(read_one, NULL);
	return let_readers_end(attr.group, error, 1);
}

/* It is behind more tasks than are searched, too: others do it then. */
static int wait_for_oldest(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	int error = ktrt_group_new(&attr.group);

	if (!error)
		error = ktrt_spawn_attr(count_task, NULL, &attr);
	for (int i = 0; i < OTHERS && !error; i++)
		error = ktrt_spawn(i % 10 ? count_task : read_one, NULL);
	return let_readers_end(attr.group, error, OTHERS / 10);
}

static void *end_event(void *task)
{
	nap_us(2000);
	ktrt_events_done(task, 1);
	return NULL;
}

/* Complete some time after it has returned. */
static int end_later(void *arg)
{
	pthread_t thread;

	if (ktrt_events_add(1) ||
	    pthread_create(&thread, NULL, end_event, ktrt_self()))
		return -EAGAIN;
	pthread_detach(thread);
	return count_task(NULL);
}

static int run_beside(void *arg)
{
	int error = ktrt_spawn(read_one, NULL);

	if (!error)
		error = ktrt_run(end_later, NULL);
	if (!error)
		error = write_one();
	return error ? error : ktrt_wait();
}

/* What the group's task makes is waited for as well. */
static int make_below(void *arg)
{
	for (int i = 0; i < OTHERS; i++)
		if (ktrt_spawn(count_task, NULL))
			return -ENOMEM;
	return 0;
}

static int wait_for_all_below(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	int error = ktrt_group_new(&attr.group);

	if (!error)
		error = ktrt_spawn_attr(make_below, NULL, &attr);
	for (attr.priority = -1; attr.priority < 2 && !error; attr.priority++)
		error = ktrt_spawn_attr(make_below, NULL, &attr);
	attr.priority = 1;
	if (!error)
		error = ktrt_spawn(read_one, NULL);
	return let_readers_end(attr.group, error, 1);
}

static void run_often(ktrt_func func, unsigned long each)
{
	set(nr_done, 0);
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(ktrt_run(func, NULL), 0);
	assert_int_equal(get(nr_done), ROUNDS * each);
}

static void do_all(void)
{
	run_often(wait_for_older, 2);
	run_often(wait_for_oldest, 1 + OTHERS);
	run_often(run_beside, 2);
	run_often(wait_for_all_below, 4 * OTHERS + 1);
}

static void others_are_left_alone(void **state)
{
	assert_int_equal(pipe(pipe_ends), 0);
	in_each_way(do_all);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

KTEST_MAIN(KTEST(others_are_left_alone))
