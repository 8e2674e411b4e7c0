/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The first error in time is the job's; whoever failed claims nothing more,
 * and the others claim nothing after it.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/turns.h"
#include "support/work.h"

#include <pthread.h>

static struct work work;

/* Each chunk lasts until its worker's next turn; it fails with its offset. */
static int fails_when_told(struct work *w, uint64_t from, uint64_t to)
{
	bool *fails = w->chunk_arg;

	turns_yield();
	return *fails ? 1000 + (int)from : 0;
}

static void run_worker(void *arg, unsigned index)
{
	kt_job_work(&work.job, &work.workers[index]);
}

/* Workers enter in order 0, 1, 2, one chunk of one unit each. */
static void start_workers(unsigned nr, bool *fails)
{
	static const uint64_t units[] = { 50 };

	work_init(&work, 1, units);
	work.chunk = fails_when_told;
	work.chunk_arg = fails;
	work_begin(&work, nr);
	turns_start(nr, run_worker, NULL);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(turns_give(i), 1);
}

static void first_in_time_not_in_position(void **state)
{
	bool fails = true;

	start_workers(3, &fails);
	assert_int_equal(turns_give(2), 0);
	assert_int_equal(kt_job_error(&work.job), 1002);
	assert_int_equal(turns_give(0), 0);
	assert_int_equal(turns_give(1), 0);
	turns_finish();
	assert_int_equal(kt_job_error(&work.job), 1002);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(work.workers[i].error, 1000 + (int)i);
	assert_int_equal(work_lowest(&work)->fail.from, 0);
	work_free(&work);
}

static void running_chunks_end_and_count(void **state)
{
	bool fails = true;

	start_workers(3, &fails);
	assert_int_equal(turns_give(1), 0);
	fails = false;
	assert_int_equal(turns_give(2), 0);
	assert_int_equal(turns_give(0), 0);
	turns_finish();
	assert_int_equal(kt_job_error(&work.job), 1001);
	assert_int_equal(work.ranges[0].next, 3);
	assert_int_equal(work.workers[0].units, 1);
	assert_int_equal(work.workers[1].units, 0);
	assert_int_equal(work.workers[2].units, 1);
	assert_int_equal(work.ranges[0].chunks, 2);
	work_undo(&work);
	work_check_undone(&work);
	assert_int_equal(work.undo_calls, 2);
	work_free(&work);
}

static void failed_worker_claims_nothing_more(void **state)
{
	static const uint64_t units[] = { 50 };
	bool fails = true;

	start_workers(1, &fails);
	assert_int_equal(turns_give(0), 0);
	turns_finish();
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(work.ranges[0].next, 1);
	assert_int_equal(work.workers[0].chunks, 0);
	assert_int_equal(work.workers[0].fail.to, 1);
	assert_true(units[0] > 1);
	work_free(&work);
}

/* A position told in a chunk that then succeeded is not the failed one's. */
static int tells_and_succeeds_then_fails(struct work *w, uint64_t from,
					 uint64_t to)
{
	if (from == 3)
		return -5;
	w->workers[0].fail_pos = w->units + from;
	return 0;
}

static int tells_and_fails(struct work *w, uint64_t from, uint64_t to)
{
	w->workers[0].fail_pos = w->units + from;
	return from == 3 ? -5 : 0;
}

static void *fail_pos_after(int (*chunk)(struct work *w, uint64_t from,
					 uint64_t to))
{
	static const uint64_t units[] = { 50 };

	work_init(&work, 1, units);
	work.job.split.target_ns = 1;
	work.chunk = chunk;
	work_begin(&work, 1);
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(work.workers[0].error, -5);
	work_free(&work);
	return work.workers[0].fail_pos;
}

static void told_position_is_of_the_failed_chunk(void **state)
{
	assert_null(fail_pos_after(tells_and_succeeds_then_fails));
	assert_non_null(fail_pos_after(tells_and_fails));
}

/* Of many that stop it at once one wins, whatever the sign of its error. */
static void *stop_with(void *error)
{
	kt_job_stop(&work.job, (int)(intptr_t)error);
	return NULL;
}

static void one_of_many_stoppers_wins(void **state)
{
	static const uint64_t units[] = { 50 };
	pthread_t threads[8];
	int error;

	work_init(&work, 1, units);
	work_begin(&work, 1);
	for (intptr_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, stop_with,
						(void *)(i & 1 ? i : -i - 1)),
				 0);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	error = kt_job_error(&work.job);
	assert_true(error == 1 || error == 3 || error == 5 || error == 7 ||
		    error == -1 || error == -3 || error == -5 || error == -7);
	kt_job_stop(&work.job, -99);
	assert_int_equal(kt_job_error(&work.job), error);
	assert_true(kt_job_stopped(&work.job));
	work_free(&work);
}

static void any_int_is_an_error(void **state)
{
	static const int errors[] = { 1, -1, INT32_MAX, INT32_MIN };
	static const uint64_t units[] = { 50 };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(errors); i++) {
		work_init(&work, 1, units);
		work_begin(&work, 1);
		assert_int_equal(kt_job_error(&work.job), 0);
		kt_job_stop(&work.job, errors[i]);
		assert_int_equal(kt_job_error(&work.job), errors[i]);
		work_free(&work);
	}
}

KTEST_MAIN(KTEST(first_in_time_not_in_position),
	   KTEST(running_chunks_end_and_count),
	   KTEST(failed_worker_claims_nothing_more),
	   KTEST(told_position_is_of_the_failed_chunk),
	   KTEST(one_of_many_stoppers_wins), KTEST(any_int_is_an_error))
