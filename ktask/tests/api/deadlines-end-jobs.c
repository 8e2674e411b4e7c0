/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job that passes its deadline claims no more chunks, ends with -ETIMEDOUT
 * and is undone exactly; one that does not is as if it had none.
 */
#include "support/work.h"

#define NR_UNITS 100000
#define MS_NS 1000000ull
#define WAIT_NS 30000000000ull

static int take_a_ms(struct work *work, size_t from, size_t to)
{
	nap_us(1000);
	return 0;
}

static int run_with(struct work *work, size_t nr_units, uint64_t deadline_ns,
		    struct ktask_result *result)
{
	struct ktask_ctl ctl = work_ctl(work, 1);

	work_begin(work, nr_units);
	ktask_ctl_set_deadline(&ctl, deadline_ns);
	ktask_ctl_set_result(&ctl, result);
	return ktask_run(WORK_BASE, nr_units, &ctl);
}

/* 100 s of work on one CPU. */
static void a_late_job_is_undone(void **state)
{
	for (int ms = 5; ms <= 40; ms += 5) {
		struct ktask_result result = KTASK_RESULT_INIT;
		struct work work = { .also = take_a_ms };
		size_t nr_done;

		assert_int_equal(run_with(&work, NR_UNITS, (uint64_t)ms * MS_NS,
					  &result),
				 -ETIMEDOUT);
		assert_true(work_undone_exactly(&work, &nr_done));
		assert_true(nr_done < NR_UNITS);
		assert_int_equal(result.error, -ETIMEDOUT);
		assert_int_equal(result.units, nr_done);
		assert_true(result.wall_ns >= (uint64_t)ms * MS_NS);
		/* No chunk failed. */
		assert_int_equal(result.fail_error, 0);
		assert_ptr_equal(result.fail_pos, NULL);
		work_end(&work);
	}
}

static void a_deadline_in_the_past_runs_nothing(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { 0 };

	assert_int_equal(run_with(&work, 1000, 1, &result), -ETIMEDOUT);
	assert_true(work_undone_exactly(&work, NULL));
	work_end(&work);
}

static void a_job_in_time_succeeds(void **state)
{
	static const uint64_t deadlines_ns[] = { 3600000 * MS_NS, INT64_MAX,
						 UINT64_MAX - 1, UINT64_MAX };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(deadlines_ns); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		struct work work = { 0 };

		assert_int_equal(
			run_with(&work, 1000, deadlines_ns[i], &result), 0);
		assert_true(work_done_once(&work));
		work_end(&work);
	}
}

/* A chunk that runs when the deadline passes ends, and its error is its own. */
static int fail_late(struct work *work, size_t from, size_t to)
{
	nap_us(20000);
	return -EIO;
}

static void a_chunk_that_fails_is_the_error(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { .also = fail_late };
	struct ktask_ctl ctl = work_ctl(&work, 1);

	work_begin(&work, 100);
	ktask_ctl_set_max_threads(&ctl, 1);
	ktask_ctl_set_deadline(&ctl, 10 * MS_NS);
	ktask_ctl_set_result(&ctl, &result);
	/* Should the first chunk be late already, none fails. */
	switch (ktask_run(WORK_BASE, 100, &ctl)) {
	case -EIO:
		assert_int_equal(result.fail_error, -EIO);
		break;
	case -ETIMEDOUT:
		assert_int_equal(work.nr_chunks, 0);
		break;
	default:
		fail();
	}
	assert_true(work_undone_exactly(&work, NULL));
	work_end(&work);
}

/* All work claimed in time: the deadline passes in the last chunk. */
static void the_last_chunk_may_be_late(void **state)
{
	struct work work = { .also = take_a_ms };
	struct ktask_ctl ctl = work_ctl(&work, 10);

	work_begin(&work, 10);
	ktask_ctl_set_deadline(&ctl, MS_NS / 2);
	switch (ktask_run(WORK_BASE, 10, &ctl)) {
	case 0:
		assert_true(work_done_once(&work));
		break;
	case -ETIMEDOUT:
		assert_int_equal(work.nr_chunks, 0);
		break;
	default:
		fail();
	}
	work_end(&work);
}

static void a_started_job_counts_from_its_start(void **state)
{
	struct work work = { .also = take_a_ms };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	struct ktask_job *job;

	work_begin(&work, NR_UNITS);
	ktask_ctl_set_max_threads(&ctl, 1);
	ktask_ctl_set_deadline(&ctl, 20 * MS_NS);
	assert_int_equal(ktask_start(&job, WORK_BASE, NR_UNITS, &ctl), 0);
	nap_us(21000);
	assert_int_equal(ktask_wait(job), -ETIMEDOUT);
	assert_int_equal(work.nr_chunks, 0);
	work_end(&work);
}

/* Nobody submits the only helper of a started job again. */
static void a_started_job_ends_by_a_late_helper(void **state)
{
	struct ktask_progress progress = KTASK_PROGRESS_INIT;
	uint64_t until_ns = ktest_now_ns() + WAIT_NS;
	struct work work = { 0 };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	struct ktask_job *job;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ktest_skip("one CPU: no job has helpers");
	work_begin(&work, 1000);
	ktask_ctl_set_max_threads(&ctl, 2);
	ktask_ctl_set_deadline(&ctl, 1);
	assert_int_equal(ktask_start(&job, WORK_BASE, 1000, &ctl), 0);
	while (ktask_poll(job, &progress) == -EINPROGRESS &&
	       ktest_now_ns() < until_ns)
		nap_us(1000);
	assert_int_equal(ktask_poll(job, &progress), 0);
	assert_int_equal(ktask_wait(job), -ETIMEDOUT);
	assert_true(work_undone_exactly(&work, NULL));
	work_end(&work);
}

KTEST_MAIN(KTEST(a_late_job_is_undone),
	   KTEST(a_deadline_in_the_past_runs_nothing),
	   KTEST(a_job_in_time_succeeds),
	   KTEST(a_chunk_that_fails_is_the_error),
	   KTEST(the_last_chunk_may_be_late),
	   KTEST(a_started_job_counts_from_its_start),
	   KTEST(a_started_job_ends_by_a_late_helper))
