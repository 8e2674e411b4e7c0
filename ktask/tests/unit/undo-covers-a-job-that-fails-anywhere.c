/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A serial job that fails in each chunk and at each unit in turn: undo covers
 * what was done before, once, in ascending order, and nothing else.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

static uint64_t fail_unit;
static unsigned fail_chunk, nr_chunks;

static int fails_at_unit(struct work *work, uint64_t from, uint64_t to)
{
	return from <= fail_unit && fail_unit < to ? -5 : 0;
}

static int fails_in_chunk(struct work *work, uint64_t from, uint64_t to)
{
	return nr_chunks++ == fail_chunk ? -5 : 0;
}

static void run_job(struct work *work)
{
	nr_chunks = 0;
	work_begin(work, 1);
	kt_job_work(&work->job, &work->workers[0]);
	work_undo(work);
	work_check_undone(work);
}

static void check_failed(const struct work *work)
{
	const struct kt_worker *worker = &work->workers[0];

	assert_true(worker->failed);
	assert_int_equal(worker->error, -5);
	assert_int_equal(kt_job_error(&work->job), -5);
	assert_int_equal(work->undone, worker->units);
}

static void at_each_unit(void **state)
{
	static const uint64_t units[] = { 300 };

	for (fail_unit = 0; fail_unit < units[0]; fail_unit++) {
		struct work work;
		const struct kt_chunk *fail;

		work_init(&work, 1, units);
		work.job.split.min_chunk = 7;
		work.chunk = fails_at_unit;
		run_job(&work);
		check_failed(&work);
		fail = &work.workers[0].fail;
		assert_in_range(fail_unit, fail->from, fail->to - 1);
		assert_int_equal(work.undone, fail->from);
		assert_int_equal(work.undo_calls, fail->from > 0);
		work_free(&work);
	}
}

/* The third range is taken first, and undone in its place. */
static void in_each_chunk_of_several_ranges(void **state)
{
	static const uint64_t units[] = { 40, 0, 25, 33, 1 };

	for (fail_chunk = 0;; fail_chunk++) {
		struct work work;

		work_init(&work, 5, units);
		work.job.split.min_chunk = 3;
		work.chunk = fails_in_chunk;
		for (unsigned i = 0; i < 5; i++)
			work.ranges[i].node = i == 2 ? 0 : (int)i + 1;
		run_job(&work);
		if (nr_chunks <= fail_chunk) {
			work_free(&work);
			break;
		}
		check_failed(&work);
		work_free(&work);
	}
	assert_in_range(fail_chunk, 20, 40);
}

static void nothing_done_is_nothing_undone(void **state)
{
	static const uint64_t units[] = { 100, 100 };
	struct work work;

	fail_chunk = 0;
	work_init(&work, 2, units);
	work.chunk = fails_in_chunk;
	run_job(&work);
	assert_int_equal(work.undo_calls, 0);
	work_free(&work);
}

static void untouched_job_is_not_undone(void **state)
{
	static const uint64_t units[] = { 100, 100 };
	struct work work;

	work_init(&work, 2, units);
	work_begin(&work, 3);
	kt_job_stop(&work.job, -ECANCELED);
	kt_job_work(&work.job, &work.workers[0]);
	work_undo(&work);
	assert_int_equal(work.undo_calls, 0);
	assert_int_equal(work.workers[0].chunks, 0);
	work_free(&work);
}

static void stopped_job_is_undone_in_one_piece(void **state)
{
	static const uint64_t units[] = { 100 };
	struct work work;

	work_init(&work, 1, units);
	work_begin(&work, 1);
	work.workers[0].tick = work_leave;
	for (unsigned i = 0; i < 5; i++)
		kt_job_work(&work.job, &work.workers[0]);
	kt_job_stop(&work.job, -ECANCELED);
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(work.workers[0].chunks, 5);
	work_undo(&work);
	work_check_undone(&work);
	assert_int_equal(work.undo_calls, 1);
	assert_int_equal(work.undone, work.workers[0].units);
	work_free(&work);
}

static void without_undo_function_nothing_happens(void **state)
{
	static const uint64_t units[] = { 100 };
	struct work work;

	work_init(&work, 1, units);
	work.job.undo = NULL;
	fail_chunk = 3;
	nr_chunks = 0;
	work.chunk = fails_in_chunk;
	work_begin(&work, 1);
	kt_job_work(&work.job, &work.workers[0]);
	work_undo(&work);
	assert_int_equal(kt_job_error(&work.job), -5);
	assert_int_equal(work.undo_calls, 0);
	work_free(&work);
}

KTEST_MAIN(KTEST(at_each_unit), KTEST(in_each_chunk_of_several_ranges),
	   KTEST(nothing_done_is_nothing_undone),
	   KTEST(untouched_job_is_not_undone),
	   KTEST(stopped_job_is_undone_in_one_piece),
	   KTEST(without_undo_function_nothing_happens))
