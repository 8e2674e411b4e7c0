/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The progress function is called by the caller, never goes back, ends with
 * all that was done, and can stop the job.
 */
#include "support/work.h"

#define NR_UNITS 300

/* So often the caller must have looked before helpers do the second half. */
#define REPORTS 12

struct told {
	struct work *work;
	uint64_t units_done, elapsed_ns;
	unsigned nr_calls, nr_wrong;
	unsigned stop_at; /* the call that says no; 0: none */
	unsigned threads;
	uint64_t remaining_ns;
};

static int check_progress(const struct ktask_progress *progress, void *arg)
{
	struct told *told = arg;

	__atomic_add_fetch(&told->nr_calls, 1, __ATOMIC_RELAXED);
	told->nr_wrong += work_is_helper(told->work);
	told->nr_wrong += progress->units_done < told->units_done;
	told->nr_wrong += progress->units_done > progress->units_total;
	told->nr_wrong += progress->units_total != NR_UNITS;
	told->nr_wrong += progress->elapsed_ns < told->elapsed_ns;
	told->nr_wrong += !progress->threads;
	told->units_done = progress->units_done;
	told->elapsed_ns = progress->elapsed_ns;
	told->threads = progress->threads;
	told->remaining_ns = progress->remaining_ns;
	return told->nr_calls == told->stop_at;
}

static bool was_told(const struct told *told)
{
	unsigned reports = told->stop_at ? told->stop_at : REPORTS;

	return __atomic_load_n(&told->nr_calls, __ATOMIC_RELAXED) >= reports;
}

static int take_a_ms(struct work *work, size_t from, size_t to)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;

	/* Or they might do all of it while the caller gets no CPU. */
	while (work_is_helper(work) && to > NR_UNITS / 2 &&
	       !was_told(work->arg) && ktest_now_ns() < end_ns)
		nap_us(200);
	burn_us(1000);
	return 0;
}

static int run_told(struct work *work, struct told *told, unsigned max_threads)
{
	struct ktask_ctl ctl = work_ctl(work, 1);

	told->work = work;
	work->arg = told;
	work_begin(work, NR_UNITS);
	ktask_ctl_set_max_threads(&ctl, max_threads);
	ktask_ctl_set_progress(&ctl, check_progress, told, 1);
	return ktask_run(WORK_BASE, NR_UNITS, &ctl);
}

static void it_never_goes_back(void **state)
{
	for (unsigned threads = 0; threads < 3; threads++) {
		struct work work = { .also = take_a_ms };
		struct told told = { 0 };

		assert_int_equal(run_told(&work, &told, threads), 0);
		assert_int_equal(told.nr_wrong, 0);
		assert_true(told.nr_calls >= 10);
		assert_int_equal(told.units_done, NR_UNITS);
		assert_int_equal(told.remaining_ns, 0);
		assert_int_equal(told.threads, 1);
		assert_true(work_done_once(&work));
		work_end(&work);
	}
}

static void it_can_stop_the_job(void **state)
{
	for (unsigned threads = 0; threads < 3; threads++) {
		for (unsigned stop_at = 1; stop_at < 5; stop_at++) {
			struct work work = { .also = take_a_ms };
			struct told told = { .stop_at = stop_at };
			size_t nr_done;

			assert_int_equal(run_told(&work, &told, threads),
					 -ECANCELED);
			assert_true(work_undone_exactly(&work, &nr_done));
			assert_true(nr_done < NR_UNITS);
			assert_int_equal(told.nr_wrong, 0);
			/* The job's end is told even so. */
			assert_int_equal(told.nr_calls, stop_at + 1);
			assert_int_equal(told.units_done, nr_done);
			work_end(&work);
		}
	}
}

static int fail_midway(struct work *work, size_t from, size_t to)
{
	burn_us(100);
	return from >= NR_UNITS / 2 ? -EIO : 0;
}

static void a_failed_job_tells_what_was_done(void **state)
{
	struct work work = { .also = fail_midway };
	struct told told = { 0 };
	size_t nr_done;

	assert_int_equal(run_told(&work, &told, 0), -EIO);
	assert_true(work_undone_exactly(&work, &nr_done));
	assert_int_equal(told.units_done, nr_done);
	assert_int_equal(told.nr_wrong, 0);
	work_end(&work);
}

static int run_smallest(struct work *work, struct told *told)
{
	struct ktask_ctl ctl = work_ctl(work, NR_UNITS);

	told->work = work;
	told->stop_at = 1;
	work_begin(work, NR_UNITS);
	ktask_ctl_set_progress(&ctl, check_progress, told, 0);
	return ktask_run(WORK_BASE, NR_UNITS, &ctl);
}

static void even_the_smallest_job_tells_its_end(void **state)
{
	for (unsigned tries = 0; tries < 50; tries++) {
		struct work work = { 0 };
		struct told told = { 0 };
		int error = run_smallest(&work, &told);
		bool is_only = told.nr_calls == 1;

		assert_int_equal(told.nr_wrong, 0);
		/* What the last call returns comes too late. */
		assert_int_equal(error, is_only ? 0 : -ECANCELED);
		if (is_only) {
			assert_int_equal(told.units_done, NR_UNITS);
			assert_true(work_done_once(&work));
		}
		work_end(&work);
		if (is_only)
			return;
		/* This thread stood still, so the job was told of before. */
	}
	ktest_skip("no job ended before its first report was due");
}

KTEST_MAIN(KTEST(it_never_goes_back), KTEST(it_can_stop_the_job),
	   KTEST(a_failed_job_tells_what_was_done),
	   KTEST(even_the_smallest_job_tells_its_end))
