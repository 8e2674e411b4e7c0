/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Chunks of several workers overlap in every way and fail, one or many, in
 * one range or in several: undo covers exactly those that succeeded.
 *
 * The workers take turns; where two chunks overlap, which of them ends first
 * and which fails is decided by the test.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/turns.h"
#include "support/work.h"

static struct work work;
/* Of 1024 chunks so many fail, and the one with this number. */
static uint64_t random_state;
static unsigned fail_of_1024, fail_chunk, nr_chunks;

/* What it will be is decided before others go on; it fails when it ends. */
static int fails_by_chance(struct work *unused, uint64_t from, uint64_t to)
{
	int fails = nr_chunks++ == fail_chunk ||
		    ktest_random_below(&random_state, 1024) < fail_of_1024;

	turns_yield();
	return fails ? -(int)(from + 1) : 0;
}

static void run_worker(void *arg, unsigned index)
{
	kt_job_work(&work.job, &work.workers[index]);
}

/* Returns the error of the first failed chunk to end. */
static int run_in_any_order(void)
{
	unsigned alive = (1u << work.nr_workers) - 1;
	int first = 0;

	nr_chunks = 0;
	turns_start(work.nr_workers, run_worker, NULL);
	while (alive) {
		unsigned i = (unsigned)ktest_random_below(&random_state,
							  work.nr_workers);

		if (!turns_give(i))
			alive &= ~(1u << i);
		if (!first && work.workers[i].failed)
			first = work.workers[i].error;
	}
	turns_finish();
	return first;
}

static uint64_t units_done(void)
{
	uint64_t units = 0;

	for (unsigned i = 0; i < work.nr_workers; i++)
		units += work.workers[i].units;
	return units;
}

/* The lowest failed unit, counting through the ranges. */
static uint64_t lowest_failed(void)
{
	for (uint64_t i = 0; i < work.nr_units; i++)
		if (work.units[i] == WORK_FAILED)
			return i;
	return UINT64_MAX;
}

static void check_lowest(void)
{
	const struct kt_worker *lowest = work_lowest(&work);

	if (lowest_failed() == UINT64_MAX)
		assert_null(lowest);
	else
		assert_ptr_equal(lowest->fail.start,
				 work.units + lowest_failed());
}

static unsigned nr_failed(void)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < work.nr_workers; i++)
		nr += work.workers[i].failed;
	return nr;
}

/* One job with these ranges; returns how many chunks failed. */
static unsigned run_job(unsigned nr_ranges, const uint64_t *units,
			unsigned nr_workers)
{
	unsigned nr;
	int first;

	work_init(&work, nr_ranges, units);
	work.chunk = fails_by_chance;
	work.job.split.min_chunk = 3;
	work_begin(&work, nr_workers);
	first = run_in_any_order();
	assert_int_equal(kt_job_error(&work.job), first);
	nr = nr_failed();
	assert_int_equal(nr > 0, first != 0);
	check_lowest();
	work_undo(&work);
	work_check_undone(&work);
	assert_int_equal(work.undone, units_done());
	work_free(&work);
	return nr;
}

static void one_chunk_fails_at_each_index(void **state)
{
	static const uint64_t units[] = { 60, 30 };

	random_state = ktest_seed();
	fail_of_1024 = 0;
	for (unsigned workers = 1; workers <= 4; workers++) {
		for (fail_chunk = 0; fail_chunk < 40; fail_chunk++)
			run_job(2, units, workers);
	}
}

static void several_fail_in_one_range(void **state)
{
	static const uint64_t units[] = { 120 };
	unsigned most = 0;

	random_state = ktest_seed();
	fail_chunk = UINT32_MAX;
	for (unsigned i = 0; i < 100; i++) {
		unsigned nr;

		fail_of_1024 =
			(unsigned)ktest_random_below(&random_state, 1024);
		nr = run_job(1, units, 5);
		most = KT_MAX(most, nr);
	}
	assert_in_range(most, 2, 5);
}

static void several_fail_in_several_ranges(void **state)
{
	unsigned most = 0;

	random_state = ktest_seed();
	fail_chunk = UINT32_MAX;
	for (unsigned i = 0; i < 150; i++) {
		unsigned nr_ranges = 1 + (unsigned)ktest_random_below(
						 &random_state, WORK_RANGES);
		unsigned workers =
			1 + (unsigned)ktest_random_below(&random_state, 8);
		uint64_t units[WORK_RANGES];
		unsigned nr;

		for (unsigned j = 0; j < nr_ranges; j++)
			units[j] = ktest_random_below(&random_state, 60);
		fail_of_1024 = 1u << ktest_random_below(&random_state, 10);
		nr = run_job(nr_ranges, units, workers);
		most = KT_MAX(most, nr);
	}
	assert_in_range(most, 3, 8);
}

/* Everybody's first chunk fails: nothing was done. */
static void all_fail_at_once(void **state)
{
	static const uint64_t units[] = { 90, 90, 90 };

	random_state = ktest_seed();
	fail_chunk = UINT32_MAX;
	fail_of_1024 = 1024;
	for (unsigned i = 0; i < 20; i++) {
		assert_in_range(run_job(3, units, 6), 1, 6);
		assert_int_equal(work.undo_calls, 0);
	}
}

KTEST_MAIN(KTEST(one_chunk_fails_at_each_index),
	   KTEST(several_fail_in_one_range),
	   KTEST(several_fail_in_several_ranges), KTEST(all_fail_at_once))
