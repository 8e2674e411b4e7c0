/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A chunk that fails, wherever it is: its code comes back, the failing position
 * is named, and exactly what succeeded is undone, once and in order.
 */
#include "ktest.h"

#include <errno.h>

#include "marks.h"

#define UNITS 400

static struct marks marks;

static void run_failing(size_t fail_at, size_t min_chunk, int error, int tell)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, marks_chunk, &marks, min_chunk);

	marks_reset(&marks, UNITS);
	marks.spin = 20;
	marks.fail_at = fail_at;
	marks.error = error;
	marks.tell = tell;
	ktask_ctl_set_undo_func(&ctl, marks_undo);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_run(marks.done, UNITS, &ctl), error);
	marks_check_undone(&marks);
	assert_int_equal(marks.done[fail_at], 0);

	assert_int_equal(result.error, error);
	assert_int_equal(result.fail_error, error);
	assert_ptr_equal(result.fail_pos, marks.done + result.fail_offset);
	assert_int_equal(result.fail_range, 0);
	if (tell || min_chunk == UNITS) {
		assert_true(tell ? result.fail_offset == fail_at
				 : result.fail_offset == 0);
	} else {
		assert_true(result.fail_offset <= fail_at);
		assert_int_equal(marks.done[result.fail_offset], 0);
	}
}

static void every_index_may_fail(void **state)
{
	for (size_t i = 0; i < UNITS; i++) {
		run_failing(i, 1, -EIO, 0);
		run_failing(i, 1, 7, 1);
		run_failing(i, 7, -EIO, 1);
	}
}

static void a_job_of_one_chunk_may_fail(void **state)
{
	run_failing(UNITS / 2, UNITS, -EIO, 1);
	run_failing(UNITS / 2, UNITS, -EIO, 0);
}

/* Of two failures the lower is named, whichever came first. */
static void the_lowest_failure_is_named(void **state)
{
	for (int round = 0; round < 300; round++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		DEFINE_KTASK_CTL(ctl, marks_chunk, &marks, 1);

		marks_reset(&marks, UNITS);
		marks.fail_at = UNITS / 2;
		marks.fail_at_2 = UNITS / 2 + 1;
		marks.error = -EIO;
		marks.tell = 1;
		ktask_ctl_set_undo_func(&ctl, marks_undo);
		ktask_ctl_set_result(&ctl, &result);
		assert_int_equal(ktask_run(marks.done, UNITS, &ctl), -EIO);
		assert_int_equal(result.fail_offset, UNITS / 2);
		marks_check_undone(&marks);
	}
}

static void failing_ranges_are_undone_exactly(void **state)
{
	uint64_t random = ktest_seed();

	for (int round = 0; round < 500; round++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		struct ktask_node nodes[6];
		DEFINE_KTASK_CTL(ctl, marks_chunk, &marks, 1);

		marks_reset(&marks, UNITS * 6);
		for (int i = 0; i < 6; i++) {
			nodes[i].start = marks.done + UNITS * i;
			nodes[i].task_size = UNITS;
			nodes[i].nid = i % 2 ? NUMA_NO_NODE : 0;
		}
		marks.spin = 5;
		marks.fail_at = ktest_random_below(&random, marks.nr);
		marks.fail_at_2 = ktest_random_below(&random, marks.nr);
		marks.error = -ENOSPC;
		ktask_ctl_set_undo_func(&ctl, marks_undo);
		ktask_ctl_set_result(&ctl, &result);
		assert_int_equal(ktask_run_numa(nodes, 6, &ctl), -ENOSPC);
		marks_check_undone(&marks);
		assert_true(result.fail_range < 6);
	}
}

static void without_undo_what_is_done_stays(void **state)
{
	DEFINE_KTASK_CTL(ctl, marks_chunk, &marks, 1);

	marks_reset(&marks, UNITS);
	marks.fail_at = UNITS - 1;
	marks.error = -EIO;
	assert_int_equal(ktask_run(marks.done, UNITS, &ctl), -EIO);
	assert_int_equal(marks.done[0], 1);
	assert_int_equal(marks.undone[0], 0);
}

KTEST_MAIN(KTEST(every_index_may_fail), KTEST(a_job_of_one_chunk_may_fail),
	   KTEST(the_lowest_failure_is_named),
	   KTEST(failing_ranges_are_undone_exactly),
	   KTEST(without_undo_what_is_done_stays))
