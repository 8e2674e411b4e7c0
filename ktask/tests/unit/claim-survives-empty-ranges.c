/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ranges without units, and jobs without ranges, are no work and no error.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#include "core/claim.h"

static void *never_called(void *position, size_t size)
{
	abort();
}

/* A worker on each node, so that each range is somebody's home. */
static void run_ranges(unsigned nr, const uint64_t *units)
{
	struct work work;

	work_init(&work, nr, units);
	work_begin(&work, nr);
	for (unsigned i = 0; i < nr; i++)
		kt_job_work(&work.job, &work.workers[i]);
	work_check_done(&work);
	assert_true(kt_job_idle(&work.job));
	assert_int_equal(kt_job_error(&work.job), 0);
	for (unsigned i = 0; i < nr; i++)
		if (!units[i])
			assert_int_equal(work.ranges[i].chunks +
						 work.ranges[i].threads,
					 0);
	work_undo(&work);
	assert_int_equal(work.undone, work.nr_units);
	work_free(&work);
}

static void empty_ranges_are_skipped(void **state)
{
	static const uint64_t first[] = { 0, 10 };
	static const uint64_t last[] = { 10, 0 };
	static const uint64_t middle[] = { 1, 0, 0, 1 };
	static const uint64_t all[] = { 0, 0, 0 };

	run_ranges(2, first);
	run_ranges(2, last);
	run_ranges(4, middle);
	run_ranges(3, all);
	run_ranges(1, all);
}

/* The array does not exist either. */
static void no_range_at_all(void **state)
{
	struct kt_worker *worker;
	struct work work;

	work_init(&work, 0, NULL);
	work.job.ranges = NULL;
	worker = &work.workers[0];
	work_begin(&work, 1);
	assert_true(kt_job_idle(&work.job));
	assert_int_equal(kt_job_units(&work.job), 0);
	kt_job_work(&work.job, worker);
	work.job.deadline_ns = 1;
	port_now_ns = 2;
	kt_job_work(&work.job, worker);
	assert_int_equal(kt_job_error(&work.job), 0);
	work_undo(&work);
	assert_int_equal(work.undo_calls, 0);
	work_free(&work);
}

static void iterator_is_not_asked_for_nothing(void **state)
{
	static const uint64_t units[] = { 0, 0 };
	struct work work;

	work_init(&work, 2, units);
	work.job.iter = never_called;
	work_begin(&work, 1);
	kt_job_work(&work.job, &work.workers[0]);
	work_undo(&work);
	assert_int_equal(work.undo_calls, 0);
	work_free(&work);
}

KTEST_MAIN(KTEST(empty_ranges_are_skipped), KTEST(no_range_at_all),
	   KTEST(iterator_is_not_asked_for_nothing))
