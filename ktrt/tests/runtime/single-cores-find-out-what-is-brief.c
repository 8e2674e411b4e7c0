/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * On a single core nobody runs tasks while their maker goes on.  So a maker stands still for
 * some of its children, and does tasks at once whose functions it then knows to be brief.
 * But it waits for no child that waits for what it does later.
 */
#include "support/pipe_tasks.h"

#include "runtime/func_kinds.h"

/* Fewer than caches hold: a maker of more stands still on any machine. */
#define CHILDREN 300
#define READERS 100
#define ROUNDS 5

static int make_some(void *arg)
{
	unsigned long *at_once = arg;

	for (int i = 0; i < CHILDREN; i++)
		if (ktrt_spawn(count_task, NULL))
			return -ENOMEM;
	*at_once = get(nr_done);
	return ktrt_wait();
}

static unsigned long make_once(void)
{
	unsigned long at_once = 0;

	set(nr_done, 0);
	assert_int_equal(ktrt_run(make_some, &at_once), 0);
	assert_int_equal(get(nr_done), CHILDREN);
	return at_once;
}

static void start_alone(unsigned flags)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = 1;
	options.flags = flags;
	options.max_threads = 2 * READERS;
	assert_int_equal(ktrt_start(&options), 0);
	rt.trial_after = 0;
}

/* A trial takes a thread, so a worker first does many tasks without one. */
static void few_tasks_need_no_trial(void **state)
{
	start_alone(0);
	rt.trial_after = 4ul * CHILDREN;
	for (int i = 0; i < 3; i++)
		make_once();
	assert_false(func_is_tried(count_task));
	assert_int_equal(ktrt_stop(), 0);
}

/* The maker stands still only for a while, and others may have the CPU then. */
static bool makes_until_tried(void)
{
	uint64_t until = ktest_now_ns() + 60000000000;

	while (!func_is_tried(count_task) && ktest_now_ns() < until)
		make_once();
	return func_is_tried(count_task);
}

static void find_out(unsigned flags)
{
	start_alone(flags);
	assert_int_equal(func_kind(count_task), FUNC_UNKNOWN);
	assert_true(makes_until_tried());
	assert_int_not_equal(func_kind(count_task), FUNC_UNKNOWN);
	assert_int_equal(ktrt_stop(), 0);
}

static void makers_find_out(void **state)
{
	find_out(0);
	find_out(KTRT_NO_UMT);
}

/* Another thread may take what is queued, so that more has to be. */
static void known_ones_are_done_at_once(void **state)
{
	unsigned long at_once = 0;

	start_alone(0);
	func_classify(count_task, true);
	assert_false(func_suits_maker(count_task));
	func_note_tried(count_task);
	assert_true(func_suits_maker(count_task));
	for (int i = 0; i < 100 && at_once < CHILDREN / 2; i++)
		at_once = make_once();
	printf("# of %d at once: %lu\n", CHILDREN, at_once);
	assert_true(at_once >= CHILDREN / 2);
	assert_int_equal(ktrt_stop(), 0);
}

static int make_readers(void *arg)
{
	int error = 0;

	for (int i = 0; i < READERS && !error; i++)
		error = ktrt_spawn(count_task, NULL);
	for (int i = 0; i < READERS && !error; i++)
		error = ktrt_spawn(read_one, NULL);
	for (int i = 0; i < READERS && !error; i++)
		error = write(pipe_ends[1], "x", 1) == 1 ? 0 : -EIO;
	return error ? error : ktrt_wait();
}

/* Later readers find what was written, and so are brief; but not while their maker stands. */
static void write_for_readers(unsigned flags)
{
	start_alone(flags);
	for (int i = 0; i < ROUNDS; i++) {
		set(nr_done, 0);
		assert_int_equal(ktrt_spawn(make_readers, NULL), 0);
		assert_true(comes_to(nr_done, 2 * READERS));
		assert_int_equal(ktrt_wait(), 0);
		assert_false(func_is_tried(read_one));
	}
	assert_int_equal(ktrt_stop(), 0);
}

static void makers_do_not_stand_for_those_that_wait(void **state)
{
	assert_int_equal(pipe(pipe_ends), 0);
	write_for_readers(0);
	write_for_readers(KTRT_NO_UMT);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

KTEST_MAIN(KTEST(makers_find_out), KTEST(few_tasks_need_no_trial),
	   KTEST(known_ones_are_done_at_once),
	   KTEST(makers_do_not_stand_for_those_that_wait))
