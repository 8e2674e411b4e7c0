/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A deadline, a stop from outside or from inside a chunk, and a tick each end
 * the claiming of chunks at once; a worker that left goes on where it was.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#include <string.h>

#define UNITS 100
#define UNIT_NS 1000

static struct work work;

static void begin_job(unsigned nr_workers)
{
	static const uint64_t units[] = { UNITS };

	port_now_ns = 1000000;
	work_init(&work, 1, units);
	work.unit_ns = UNIT_NS;
	work.job.split.target_ns = UNIT_NS; /* chunks of one unit */
	work_begin(&work, nr_workers);
}

static void no_chunk_is_claimed_after_the_deadline(void **state)
{
	begin_job(1);
	work.job.deadline_ns = port_now_ns + 10 * UNIT_NS;
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(kt_job_error(&work.job), -ETIMEDOUT);
	assert_int_equal(work.workers[0].units, 10);
	work_undo(&work);
	work_check_undone(&work);
	assert_int_equal(work.undone, 10);
	work_free(&work);
}

static void deadline_in_the_past_does_nothing(void **state)
{
	begin_job(1);
	work.job.deadline_ns = port_now_ns;
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(kt_job_error(&work.job), -ETIMEDOUT);
	assert_int_equal(work.workers[0].units, 0);
	work_free(&work);
}

/* The last chunk ends late, but it was claimed in time. */
static void work_that_is_all_claimed_is_in_time(void **state)
{
	begin_job(2);
	work.job.deadline_ns = port_now_ns + UNITS * UNIT_NS;
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(work.workers[0].units, UNITS);
	assert_int_equal(kt_job_error(&work.job), 0);
	kt_job_work(&work.job, &work.workers[1]);
	assert_int_equal(kt_job_error(&work.job), 0);
	work_check_done(&work);
	work_free(&work);
}

static int stops_at_20(struct work *w, uint64_t from, uint64_t to)
{
	if (from == 20)
		kt_job_stop(&w->job, -ECANCELED);
	return 0;
}

static void stop_in_a_chunk_is_its_last(void **state)
{
	begin_job(1);
	work.chunk = stops_at_20;
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(kt_job_error(&work.job), -ECANCELED);
	assert_int_equal(work.workers[0].units, 21);
	assert_false(work.workers[0].failed);
	assert_null(work_lowest(&work));
	work_undo(&work);
	work_check_undone(&work);
	assert_int_equal(work.undone, 21);
	work_free(&work);
}

static void stop_before_is_no_chunk_at_all(void **state)
{
	begin_job(1);
	kt_job_stop(&work.job, -ECANCELED);
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(work.workers[0].units, 0);
	assert_int_equal(work.ranges[0].threads, 0);
	work_free(&work);
}

static uint64_t ticked_at_ns;
static unsigned nr_ticks;

static bool leaves_every_third(struct kt_worker *worker, uint64_t now_ns)
{
	assert_int_equal(now_ns, port_now_ns);
	assert_int_equal(now_ns, worker->end_ns);
	ticked_at_ns = now_ns;
	return ++nr_ticks % 3 == 0;
}

static bool pass_time_in_tick(struct kt_worker *worker, uint64_t now_ns)
{
	port_now_ns += 1000 * UNIT_NS;
	return false;
}

static void a_pause_in_a_tick_is_no_work(void **state)
{
	begin_job(1);
	work.workers[0].tick = pass_time_in_tick;
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(work.workers[0].units, UNITS);
	assert_int_equal(work.workers[0].cost.high, UNIT_NS << KT_COST_SHIFT);
	work_free(&work);
}

static void worker_leaves_and_comes_back(void **state)
{
	unsigned stays = 0;

	begin_job(1);
	nr_ticks = 0;
	work.workers[0].tick = leaves_every_third;
	while (!kt_job_idle(&work.job)) {
		kt_job_work(&work.job, &work.workers[0]);
		stays++;
		assert_int_equal(work.workers[0].chunks,
				 KT_MIN(3 * stays, UNITS));
	}
	assert_int_equal(nr_ticks, UNITS);
	assert_int_equal(ticked_at_ns, port_now_ns);
	assert_int_equal(work.ranges[0].chunks, UNITS);
	/* One that comes back in vain is not counted once more. */
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(work.ranges[0].chunks, UNITS);
	work_check_done(&work);
	work_free(&work);
}

static int fails_at_20(struct work *w, uint64_t from, uint64_t to)
{
	return from == 20 ? -5 : 0;
}

static bool count_tick(struct kt_worker *worker, uint64_t now_ns)
{
	nr_ticks++;
	return false;
}

static void failed_chunk_has_no_tick(void **state)
{
	begin_job(1);
	nr_ticks = 0;
	work.chunk = fails_at_20;
	work.workers[0].tick = count_tick;
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(nr_ticks, 20);
	assert_int_equal(work.workers[0].end_ns, port_now_ns);
	work_free(&work);
}

static void job_can_be_begun_again(void **state)
{
	begin_job(1);
	work.chunk = fails_at_20;
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(kt_job_error(&work.job), -5);
	work.chunk = NULL;
	memset(work.units, WORK_FRESH, UNITS);
	work_begin(&work, 1);
	assert_false(work.workers[0].failed);
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(kt_job_error(&work.job), 0);
	work_check_done(&work);
	work_free(&work);
}

static void chunks_grow_and_then_shrink(void **state)
{
	static const uint64_t units[] = { 100000 };

	port_now_ns = 0;
	work_init(&work, 1, units);
	work.unit_ns = 1;
	work_begin(&work, 2);
	work.workers[0].tick = work_leave;
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(work.workers[0].units, 1);
	kt_job_work(&work.job, &work.workers[0]);
	assert_int_equal(work.workers[0].units, 1 + 99999 / 8);
	/* Who joins later knows the cost already. */
	kt_worker_begin(&work.workers[1], &work.job, 0, 1);
	work.workers[1].tick = work_leave;
	kt_job_work(&work.job, &work.workers[1]);
	assert_int_equal(work.workers[1].units, (99999 - 99999 / 8) / 8);
	work_free(&work);
}

KTEST_MAIN(KTEST(no_chunk_is_claimed_after_the_deadline),
	   KTEST(deadline_in_the_past_does_nothing),
	   KTEST(work_that_is_all_claimed_is_in_time),
	   KTEST(stop_in_a_chunk_is_its_last),
	   KTEST(stop_before_is_no_chunk_at_all),
	   KTEST(a_pause_in_a_tick_is_no_work),
	   KTEST(worker_leaves_and_comes_back), KTEST(failed_chunk_has_no_tick),
	   KTEST(job_can_be_begun_again), KTEST(chunks_grow_and_then_shrink))
