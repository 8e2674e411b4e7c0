/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * There are never more workers than max_threads.  Those that wait go on without
 * more, also for groups and events that need tasks which they did not make;
 * tasks wait for a thread while others block, which counts as stalls; what so few
 * threads cannot do is refused.
 */
#include "support/counted_threads.h"

#define BLOCKERS 24
#define FEW 3
#define NAMED 200

static unsigned long done;
static unsigned gate;
static int pipes[BLOCKERS][2];

static struct ktrt_info info_now(void)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	assert_int_equal(ktrt_info_get(&info), 0);
	return info;
}

static void start_with(unsigned max_threads, unsigned flags)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.max_threads = max_threads;
	options.flags = flags;
	set(done, 0);
	set(gate, 0);
	assert_int_equal(ktrt_start(&options), 0);
}

static void stop_within(unsigned max_threads)
{
	assert_true(workers_are_at_most(max_threads));
	assert_int_equal(ktrt_stop(), 0);
}

static int count_task(void *arg)
{
	more(done);
	return 0;
}

/* ---- tasks that block ---- */

static int read_one(void *arg)
{
	char byte;

	return read(((int *)arg)[0], &byte, 1) == 1 ? count_task(NULL) : -EIO;
}

/* For several stalls, if a CPU is to be had. */
static void watch_few(void)
{
	uint64_t end_ns = ktest_now_ns() + 200000000;

	while (ktest_now_ns() < end_ns) {
		assert_true(workers_are_at_most(FEW));
		nap_us(1000);
	}
	assert_true(holds_soon(workers_there() == FEW));
	assert_true(holds_soon(info_now().stalls > 0));
}

/* So many block that the others have no thread, until they are freed. */
static void blocked_ones_keep_others_waiting(void **state)
{
	for (unsigned flags = 0; flags <= KTRT_FOLLOW; flags++) {
		start_with(FEW, flags);
		for (int i = 0; i < BLOCKERS; i++) {
			assert_int_equal(pipe(pipes[i]), 0);
			assert_int_equal(ktrt_spawn(read_one, pipes[i]), 0);
		}
		watch_few();
		for (int i = 0; i < BLOCKERS; i++)
			assert_int_equal(write(pipes[i][1], "x", 1), 1);
		assert_int_equal(ktrt_wait(), 0);
		assert_int_equal(get(done), BLOCKERS);
		for (int i = 0; i < BLOCKERS; i++) {
			close(pipes[i][0]);
			close(pipes[i][1]);
		}
		stop_within(FEW);
	}
}

/* ---- tasks that wait ---- */

static int make_four(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	int error = 0;

	attr.node = 0;
	for (int i = 0; i < 4 && !error; i++)
		error = ktrt_spawn_attr(count_task, NULL, &attr);
	return error ? error : ktrt_wait();
}

static void waiters_of_named_nodes_end(void **state)
{
	static const unsigned limits[] = { 0, 2, 1 };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.node = 0;
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(limits); i++) {
		start_with(limits[i], 0);
		for (int n = 0; n < NAMED; n++)
			assert_int_equal(
				ktrt_spawn_attr(make_four, NULL, &attr), 0);
		assert_true(comes_to(done, 4 * NAMED));
		assert_int_equal(ktrt_wait(), 0);
		stop_within(info_now().max_threads);
	}
}

/* More than sixty levels, of which only the first waits. */
static int spawn_down(void *arg)
{
	intptr_t levels = (intptr_t)arg;
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	more(done);
	attr.priority = levels % 2 ? 1 : 0;
	return levels ? ktrt_spawn_attr(spawn_down, (void *)(levels - 1), &attr)
		      : 0;
}

static int wait_above(void *arg)
{
	int error = spawn_down((void *)1000);

	return error ? error : ktrt_wait();
}

static void deep_children_are_reached(void **state)
{
	start_with(1, 0);
	assert_int_equal(ktrt_spawn(wait_above, NULL), 0);
	assert_true(comes_to(done, 1001));
	assert_int_equal(ktrt_wait(), 0);
	stop_within(1);
}

/* ---- waits for what a stranger must do ---- */

static int wait_for_group(void *arg)
{
	while (!get(gate))
		nap_us(100);
	return ktrt_group_wait(arg);
}

/* The only worker waits for a task that comes after one that is not its own. */
static void groups_need_no_thread_more(void **state)
{
	struct ktrt_dep dep = { &gate, 0, KTRT_INOUT };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_group *group;

	start_with(1, 0);
	assert_int_equal(ktrt_group_new(&group), 0);
	assert_int_equal(ktrt_spawn(wait_for_group, group), 0);
	attr.deps = &dep;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
	attr.group = group;
	assert_int_equal(ktrt_spawn_attr(count_task, NULL, &attr), 0);
	set(gate, 1);
	assert_true(comes_to(done, 2));
	assert_int_equal(ktrt_wait(), 0);
	ktrt_group_free(group);
	stop_within(1);
}

static struct ktrt_task *held;

static int hold_task(void *arg)
{
	int error = ktrt_events_add(1);

	set(held, ktrt_self());
	return error;
}

static int wait_for_held(void *arg)
{
	int error = ktrt_spawn(hold_task, NULL);

	while (!get(gate))
		nap_us(100);
	return error ? error : ktrt_wait();
}

static int release_task(void *arg)
{
	ktrt_events_done(get(held), 1);
	return count_task(NULL);
}

static void events_need_no_thread_more(void **state)
{
	start_with(1, 0);
	assert_int_equal(ktrt_spawn(wait_for_held, NULL), 0);
	assert_int_equal(ktrt_spawn(release_task, NULL), 0);
	set(gate, 1);
	assert_true(comes_to(done, 1));
	assert_int_equal(ktrt_wait(), 0);
	stop_within(1);
}

/* ---- options ---- */

static void few_threads_serve_few_cores(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.max_threads = 1;
	options.workers = 2;
	assert_int_equal(ktrt_start(&options), 0);
	assert_int_equal(info_now().workers, 1);
	assert_int_equal(info_now().max_threads, 1);
	stop_within(1);
	options.flags = KTRT_FOLLOW;
	assert_int_equal(ktrt_start(&options), -EINVAL);
	options.max_threads = 2;
	assert_int_equal(ktrt_start(&options), 0);
	assert_int_equal(info_now().workers, 1);
	stop_within(2);
}

KTEST_MAIN(KTEST(blocked_ones_keep_others_waiting),
	   KTEST(waiters_of_named_nodes_end), KTEST(deep_children_are_reached),
	   KTEST(groups_need_no_thread_more), KTEST(events_need_no_thread_more),
	   KTEST(few_threads_serve_few_cores))
