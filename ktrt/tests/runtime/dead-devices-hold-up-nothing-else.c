/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks that wait in the kernel for a device that does not answer hold up only what
 * depends on them: everything else is done meanwhile, also where nobody tells which
 * workers are blocked, and up to the limit of threads.  Groups and data of others may be
 * waited for.
 */
#include "support/runs.h"

#include <unistd.h>

#define DEAD 6
#define OTHERS (KTEST_TSAN || KTEST_ASAN ? 2000u : 20000u)

static int device[2]; /* a pipe into which nobody writes */
static unsigned long blocked, ran, after;
static int answered, datum, chain;
static char parts[OTHERS / 20];

static int ask_device(void *arg)
{
	char byte;

	more(blocked);
	return read(device[0], &byte, 1) == 1 ? 0 : -EIO;
}

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static int count_after(void *arg)
{
	more(after);
	return get(answered) ? 0 : -EPROTO;
}

static int spawn_on(ktrt_func func, void *addr, unsigned mode,
		    struct ktrt_group *group)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { addr, 0, mode };

	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.group = group;
	return ktrt_spawn_attr(func, NULL, &attr);
}

/* As many as leave the runtime one thread; one of them writes @datum. */
static void ask_all(void)
{
	assert_int_equal(spawn_on(ask_device, &datum, KTRT_OUT, NULL), 0);
	assert_int_equal(spawn_on(count_after, &datum, KTRT_IN, NULL), 0);
	for (int i = 1; i < DEAD; i++)
		assert_int_equal(ktrt_spawn(ask_device, NULL), 0);
}

static int spawn_some(void *arg)
{
	int error = 0;

	for (int i = 0; i < 9 && !error; i++)
		error = ktrt_spawn(count_task, NULL);
	if (!error)
		error = ktrt_wait();
	more(ran);
	return error;
}

/* By dependences, in a group, by tasks that wait, and from this thread. */
static void do_others(void)
{
	struct ktrt_dep dep = { &chain, 0, KTRT_INOUT };
	struct ktrt_group *group;

	assert_int_equal(ktrt_group_new(&group), 0);
	for (unsigned i = 0; i < OTHERS / 2; i++)
		assert_int_equal(spawn_on(count_task, &chain,
					  i % 3 ? KTRT_IN : KTRT_INOUT, group),
				 0);
	assert_int_equal(ktrt_group_wait(group), 0);
	assert_int_equal(ktrt_wait_for(&dep, 1), 0);
	for (unsigned i = 0; i < OTHERS / 20; i++)
		assert_int_equal(
			spawn_on(spawn_some, &parts[i], KTRT_OUT, group), 0);
	assert_int_equal(ktrt_group_wait(group), 0);
	ktrt_group_free(group);
	assert_int_equal(ktrt_run(count_task, NULL), 0);
	assert_int_equal(get(ran), OTHERS + 1);
}

static void answer_all(void)
{
	set(answered, 1);
	for (int i = 0; i < DEAD; i++)
		assert_int_equal(write(device[1], "x", 1), 1);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(after), 1);
	assert_int_equal(get(blocked), DEAD);
}

static void others_continue(void)
{
	blocked = ran = after = 0;
	set(answered, 0);
	assert_int_equal(pipe(device), 0);
	ask_all();
	/* Most of them are in the kernel before the others begin. */
	assert_true(holds_soon(get(blocked) == DEAD));
	do_others();
	assert_int_equal(get(after), 0);
	answer_all();
	close(device[0]);
	close(device[1]);
}

static void in_all_ways(void **state)
{
	in_each_way(others_continue);
}

/* One thread is left for everything else. */
static void at_the_limit(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.max_threads = DEAD + 1;
	for (int i = 0; i < 2; i++) {
		options.workers = i;
		options.flags = i ? KTRT_NO_UMT : 0;
		assert_int_equal(ktrt_start(&options), 0);
		others_continue();
		assert_int_equal(ktrt_stop(), 0);
	}
}

KTEST_MAIN(KTEST(in_all_ways), KTEST(at_the_limit))
