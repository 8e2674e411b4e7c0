/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whatever the number of threads and ranges, each unit is in exactly one
 * chunk; chunks, units and threads are counted right.
 */
#include "ktest.h"
#include "support/port.h"
#include "support/work.h"

#include <pthread.h>
#include <sched.h>

#define ROUNDS 8

static uint64_t sum_chunks(const struct work *work)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < work->job.nr_ranges; i++)
		sum += work->ranges[i].chunks;
	return sum;
}

static void check_counts(const struct work *work)
{
	uint64_t chunks = 0, units = 0;

	for (unsigned i = 0; i < work->nr_workers; i++) {
		chunks += work->workers[i].chunks;
		units += work->workers[i].units;
	}
	assert_int_equal(units, work->nr_units);
	assert_int_equal(chunks, sum_chunks(work));
	assert_true(kt_job_idle(&work->job));
	assert_int_equal(kt_job_error(&work->job), 0);
	work_check_done(work);
}

struct thread {
	pthread_t thread;
	struct work *work;
	unsigned index;
	pthread_barrier_t *start;
};

static void *work_in_thread(void *arg)
{
	struct thread *thread = arg;

	pthread_barrier_wait(thread->start);
	kt_job_work(&thread->work->job, &thread->work->workers[thread->index]);
	return NULL;
}

static void run_threads(struct work *work)
{
	struct thread threads[WORK_WORKERS];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, work->nr_workers);
	for (unsigned i = 0; i < work->nr_workers; i++) {
		threads[i] = (struct thread){ 0, work, i, &start };
		assert_int_equal(pthread_create(&threads[i].thread, NULL,
						work_in_thread, &threads[i]),
				 0);
	}
	for (unsigned i = 0; i < work->nr_workers; i++)
		pthread_join(threads[i].thread, NULL);
	pthread_barrier_destroy(&start);
}

static void one_worker_does_all(void **state)
{
	static const uint64_t units[] = { 1000, 1, 77 };
	struct work work;

	work_init(&work, 3, units);
	work.job.split.min_chunk = 5;
	work_begin(&work, 1);
	kt_job_work(&work.job, &work.workers[0]);
	check_counts(&work);
	work_free(&work);
}

static void threads_share_one_range(void **state)
{
	static const uint64_t units[] = { 200000 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct work work;

		work_init(&work, 1, units);
		work.unit_ns = 100000; /* ten units a chunk */
		work_begin(&work, 8);
		run_threads(&work);
		check_counts(&work);
		work_free(&work);
	}
}

static void threads_share_random_ranges(void **state)
{
	uint64_t random = ktest_seed();

	for (unsigned i = 0; i < 4 * ROUNDS; i++) {
		uint64_t units[WORK_RANGES];
		unsigned nr =
			1 + (unsigned)ktest_random_below(&random, WORK_RANGES);
		struct work work;

		for (unsigned j = 0; j < nr; j++)
			units[j] = ktest_random_below(&random, 20000);
		work_init(&work, nr, units);
		work.job.split.min_chunk = 1 + ktest_random_below(&random, 50);
		work.job.split.align = 1ull << ktest_random_below(&random, 8);
		work.unit_ns = 1 + ktest_random_below(&random, 500000);
		work_begin(&work, 1 + (unsigned)ktest_random_below(
					      &random, WORK_WORKERS));
		run_threads(&work);
		check_counts(&work);
		work_free(&work);
	}
}

/* Range by range at most one thread is in the iterator. */
static uint32_t in_iterator;
static uint32_t nr_twice, nr_steps;

static void *one_at_a_time(void *position, size_t size)
{
	if (__atomic_fetch_add(&in_iterator, 1, __ATOMIC_RELAXED))
		kt_add(&nr_twice, 1);
	/* Beside busy processes this takes a slice of each of them. */
	if (++nr_steps % 16 == 0)
		sched_yield();
	__atomic_fetch_sub(&in_iterator, 1, __ATOMIC_RELAXED);
	return (uint8_t *)position + size;
}

static void threads_share_an_iterator(void **state)
{
	static const uint64_t units[] = { 20000 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct work work;

		work_init(&work, 1, units);
		work.job.iter = one_at_a_time;
		work.unit_ns = 100000;
		work_begin(&work, 8);
		run_threads(&work);
		check_counts(&work);
		assert_int_equal(nr_twice, 0);
		work_free(&work);
	}
}

KTEST_MAIN(KTEST(one_worker_does_all), KTEST(threads_share_one_range),
	   KTEST(threads_share_random_ranges), KTEST(threads_share_an_iterator))
