/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task that yields goes on, whichever tasks go first by that: also such as wait for it,
 * by data that they name weakly or by a group.  What it yields for is done, also by the
 * last of many tasks, where others yield as often.  The same with as many threads as
 * there may be, and where the system has no more.
 */
#include "support/counted_threads.h"

#include "failalloc.h"

#define ROUNDS 50
#define YIELDS 3
#define LIMITS 4
#define SPINNERS 13

static unsigned long done;
static unsigned made, gate;
static int datum;

static int count_task(void *arg)
{
	more(done);
	return 0;
}

/* All are there when the first one yields. */
static int yield_some(void *arg)
{
	int error = 0;

	while (!get(made))
		;
	for (int i = 0; i < YIELDS && !error; i++)
		error = ktrt_yield();
	more(done);
	return error;
}

static int spawn_by(ktrt_func func, void *arg, unsigned mode,
		    struct ktrt_group *group)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &datum, 0, mode };

	attr.deps = &dep;
	attr.nr_deps = mode ? 1 : 0;
	attr.group = group;
	return ktrt_spawn_attr(func, arg, &attr);
}

/* ---- runtimes ---- */

/* With each limit that may be reached, then without one. */
static void within_each_limit(void (*test)(void))
{
	for (unsigned threads = 1; threads <= LIMITS; threads++) {
		struct ktrt_options options = KTRT_OPTIONS_INIT;

		options.workers = threads > 2 ? 2 : threads;
		options.max_threads = threads;
		options.flags = threads % 2 ? KTRT_NO_UMT : 0;
		printf("# at most %u threads\n", threads);
		assert_int_equal(ktrt_start(&options), 0);
		test();
		assert_true(workers_are_at_most(threads));
		assert_int_equal(ktrt_stop(), 0);
	}
	in_each_way(test);
}

/* ---- tasks that wait for the one that yields ---- */

/* Its child reads what that writes. */
static int wait_for_reader(void *arg)
{
	int error = spawn_by(count_task, NULL, KTRT_IN, NULL);

	return error ? error : ktrt_wait();
}

static void readers_are_waited_for(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		set(done, 0);
		set(made, 0);
		assert_int_equal(spawn_by(yield_some, NULL, KTRT_INOUT, NULL),
				 0);
		assert_int_equal(
			spawn_by(wait_for_reader, NULL, KTRT_WEAK_IN, NULL), 0);
		set(made, 1);
		assert_true(comes_to(done, 2));
		assert_int_equal(ktrt_wait(), 0);
	}
}

static void weak_data_may_be_waited_for(void **state)
{
	within_each_limit(readers_are_waited_for);
}

static int wait_for_group(void *arg)
{
	int code = ktrt_group_wait(arg);

	more(done);
	return code;
}

static void groups_are_waited_for(void)
{
	struct ktrt_group *group;

	for (int i = 0; i < ROUNDS; i++) {
		set(done, 0);
		set(made, 0);
		assert_int_equal(ktrt_group_new(&group), 0);
		assert_int_equal(spawn_by(yield_some, NULL, 0, group), 0);
		assert_int_equal(ktrt_spawn(wait_for_group, group), 0);
		set(made, 1);
		assert_true(comes_to(done, 2));
		assert_int_equal(ktrt_wait(), 0);
		ktrt_group_free(group);
	}
}

static void groups_may_be_waited_for(void **state)
{
	within_each_limit(groups_are_waited_for);
}

/* ---- tasks that yield for others ---- */

static int yield_until_open(void *arg)
{
	int error = 0;

	while (!get(gate) && !error)
		error = ktrt_yield();
	more(done);
	return error;
}

static int open_gate(void *arg)
{
	set(gate, 1);
	return 0;
}

/* The last of them, and the one that waits for a thread longest. */
static void the_last_is_done(void)
{
	for (unsigned nr = 1; nr <= SPINNERS; nr = nr * 3 + 1) {
		set(done, 0);
		set(gate, 0);
		for (unsigned i = 0; i < nr; i++)
			assert_int_equal(ktrt_spawn(yield_until_open, NULL), 0);
		assert_int_equal(ktrt_spawn(open_gate, NULL), 0);
		assert_true(comes_to(done, nr));
		assert_int_equal(ktrt_wait(), 0);
	}
}

static void all_may_yield_for_one(void **state)
{
	within_each_limit(the_last_is_done);
}

static void all_may_yield_without_threads(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	if (KTEST_TSAN)
		ktest_skip("thread sanitizer ends when threads are refused");
	options.flags = KTRT_NO_UMT;
	options.workers = 1;
	assert_int_equal(ktrt_start(&options), 0);
	failalloc_arm_from(1, FAILALLOC_THREAD);
	the_last_is_done();
	readers_are_waited_for();
	failalloc_disarm();
	assert_int_equal(ktrt_stop(), 0);
}

/* A child with a priority, one below that and one that is done after both. */
static int make_deeper(void *arg)
{
	return ktrt_spawn(count_task, NULL);
}

static int yield_for_children(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	int error;

	attr.priority = -1;
	error = ktrt_spawn_attr(count_task, NULL, &attr);
	if (!error)
		error = ktrt_spawn(make_deeper, NULL);
	while (get(done) < 2 && !error)
		error = ktrt_yield();
	return error;
}

static void children_are_done(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		set(done, 0);
		assert_int_equal(ktrt_spawn(yield_for_children, NULL), 0);
		assert_true(comes_to(done, 2));
		assert_int_equal(ktrt_wait(), 0);
	}
}

static void children_may_be_yielded_for(void **state)
{
	within_each_limit(children_are_done);
}

KTEST_MAIN(KTEST(weak_data_may_be_waited_for), KTEST(groups_may_be_waited_for),
	   KTEST(all_may_yield_for_one), KTEST(all_may_yield_without_threads),
	   KTEST(children_may_be_yielded_for))
