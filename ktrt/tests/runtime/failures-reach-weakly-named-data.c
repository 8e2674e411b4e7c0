/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a failed task should have written is spoilt for those that read it, also where
 * tasks between them name it weakly or release it early: what they skip, pass on and
 * make good again.
 */
#include "support/weak_data.h"

#include "failalloc.h"

static int fail_task(void *arg)
{
	note_run(arg);
	return 77;
}

/* A wait before there are children tells of none of them. */
static int read_and_write(void *arg)
{
	int error = ktrt_wait();

	note_run(&nr_ran[0]);
	if (!error)
		error = spawn_on(note_run, &nr_ran[1], &datum_a, KTRT_IN);
	if (!error && arg)
		error = ktrt_wait() == -ECANCELED ? 0 : 1;
	if (!error)
		error = spawn_on(note_run, &nr_ran[2], &datum_a, KTRT_IN);
	return error ? error
		     : spawn_on(note_run, &nr_ran[3], &datum_a, KTRT_OUT);
}

static void spoilt_data_reaches_children(bool told)
{
	begin_case();
	assert_int_equal(spawn_on(fail_task, &nr_ran[4], &datum_a, KTRT_OUT),
			 0);
	assert_int_equal(spawn_on(read_and_write, told ? &datum_a : NULL,
				  &datum_a, KTRT_WEAK_INOUT),
			 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[5], &datum_a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 77);
	assert_int_equal(nr_ran[0], 1);
	assert_int_equal(nr_ran[1], 0);
	assert_int_equal(nr_ran[2], told);
	assert_int_equal(nr_ran[3], 1);
	/* All that the child writes is good again. */
	assert_int_equal(nr_ran[5], 1);
}

static int do_nothing(void *arg)
{
	return 0;
}

static void spoilt_data_goes_past(void)
{
	struct ktrt_dep dep = { &datum_a, 0, KTRT_INOUT };

	begin_case();
	assert_int_equal(spawn_on(fail_task, &nr_ran[4], &datum_a, KTRT_OUT),
			 0);
	assert_int_equal(spawn_on(do_nothing, NULL, &datum_a, KTRT_WEAK_INOUT),
			 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[0], &datum_a, KTRT_IN), 0);
	assert_int_equal(spawn_on(do_nothing, NULL, &datum_a, KTRT_WEAK_IN), 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[0], &datum_a, KTRT_INOUT),
			 0);
	assert_int_equal(
		spawn_with(note_run, &nr_ran[0], &dep, 1, KTRT_EARLY_RELEASE),
		0);
	assert_int_equal(spawn_on(do_nothing, NULL, &datum_a, KTRT_WEAK_OUT),
			 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[1], &datum_a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 77);
	assert_int_equal(nr_ran[0], 0);
	assert_int_equal(nr_ran[1], 1);
}

static char bytes[300];

/* Its children cut the data in so many parts that its end needs memory. */
static int read_all_without_memory(void *arg)
{
	int error = 0;

	for (size_t i = 0; i < sizeof(bytes) && !error; i++) {
		struct ktrt_dep dep = { &bytes[i], 1, KTRT_IN };

		error = spawn_with(note_run, &nr_ran[1], &dep, 1, KTRT_ALWAYS);
	}
	while (!get(nr_ran[7]))
		nap_us(200);
	failalloc_arm_from(1, FAILALLOC_MEMORY);
	return error;
}

static void spoilt_data_goes_past_without_memory(void)
{
	struct ktrt_dep dep = { bytes, sizeof(bytes), KTRT_OUT };

	begin_case();
	assert_int_equal(spawn_with(fail_task, &nr_ran[4], &dep, 1, 0), 0);
	dep.mode = KTRT_WEAK_INOUT;
	assert_int_equal(spawn_with(read_all_without_memory, NULL, &dep, 1, 0),
			 0);
	dep.mode = KTRT_IN;
	assert_int_equal(spawn_with(note_run, &nr_ran[0], &dep, 1, 0), 0);
	set(nr_ran[7], 1);
	assert_int_equal(ktrt_wait(), 77);
	assert_true(failalloc_disarm() > 0);
	assert_int_equal(nr_ran[1], sizeof(bytes));
	assert_int_equal(nr_ran[0], 0);
}

static int fail_below(void *arg)
{
	int error = spawn_on(fail_task, &nr_ran[4], &datum_a, KTRT_INOUT);

	if (!error && arg && ktrt_wait() != 77)
		error = 1;
	return error;
}

/* What a child has failed to write its parent has, unless it was told. */
static void failed_children_spoil_data(unsigned mode, unsigned flags)
{
	struct ktrt_dep dep = { &datum_a, 0, mode };

	begin_case();
	assert_int_equal(spawn_with(fail_below, NULL, &dep, 1, flags), 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[0], &datum_a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 77);
	assert_int_equal(nr_ran[0], 0);
	assert_int_equal(spawn_with(fail_below, &datum_a, &dep, 1, flags), 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[0], &datum_a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(nr_ran[0], 1);
	assert_int_equal(spawn_with(fail_task, &nr_ran[4], &dep, 1, flags), 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[0], &datum_a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 77);
	assert_int_equal(nr_ran[0], 1);
}

/* Which of the two is released first does not matter. */
static void failed_children_spoil_data_named_twice(unsigned first,
						   unsigned second)
{
	struct ktrt_dep deps[] = { { &datum_a, 0, first },
				   { &datum_a, 0, second } };

	begin_case();
	assert_int_equal(spawn_with(fail_below, NULL, deps, 2, 0), 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[0], &datum_a, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 77);
	assert_int_equal(nr_ran[0], 0);
}

/* No body of theirs is begun. */
static void cancelled_tasks_release(void)
{
	begin_case();
	assert_int_equal(spawn_on(hold_data, NULL, &datum_b, KTRT_OUT), 0);
	assert_int_equal(ktrt_group_new(&task_group), 0);
	ktrt_group_cancel(task_group);
	assert_int_equal(
		spawn_on(note_and_use, NULL, &datum_b, KTRT_WEAK_INOUT), 0);
	assert_int_equal(ktrt_group_wait(task_group), -ECANCELED);
	release_holder();
	ktrt_group_free(task_group);
	task_group = NULL;
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(spawn_on(note_run, &nr_ran[2], &datum_b, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(nr_ran[0] + nr_ran[1], 0);
	assert_int_equal(nr_ran[2], 1);
}

static void pass_failures_on(void)
{
	spoilt_data_reaches_children(false);
	spoilt_data_reaches_children(true);
	spoilt_data_goes_past();
	spoilt_data_goes_past_without_memory();
	failed_children_spoil_data(KTRT_WEAK_INOUT, 0);
	failed_children_spoil_data(KTRT_INOUT, KTRT_EARLY_RELEASE);
	failed_children_spoil_data_named_twice(KTRT_WEAK_IN, KTRT_WEAK_OUT);
	failed_children_spoil_data_named_twice(KTRT_WEAK_OUT, KTRT_WEAK_IN);
	cancelled_tasks_release();
}

static void failures_are_passed_on(void **state)
{
	in_each_way(pass_failures_on);
}

KTEST_MAIN(KTEST(failures_are_passed_on))
