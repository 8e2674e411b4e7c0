/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask_start() returns at once, helpers begin, whoever waits does the rest;
 * many jobs may be under way, started and waited for by different threads.
 */
#include "support/work.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#define NR_UNITS 500
#define NR_JOBS 40

static void one_thread_does_it_when_waiting(void **state)
{
	struct work work = { 0 };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	struct ktask_job *job;

	work_begin(&work, NR_UNITS);
	ktask_ctl_set_max_threads(&ctl, 1);
	assert_int_equal(ktask_start(&job, WORK_BASE, NR_UNITS, &ctl), 0);
	assert_non_null(job);
	assert_int_equal(ktask_poll(job, NULL), -EINPROGRESS);
	nap_us(20000);
	assert_int_equal(work.nr_chunks, 0);
	assert_int_equal(ktask_wait(job), 0);
	assert_true(work_done_once(&work));
	work_end(&work);
}

/* The control block may go: only what it points to must stay. */
static void started_from_a_copy(struct ktask_job **job, struct work *work)
{
	struct ktask_ctl ctl = work_ctl(work, 1);

	assert_int_equal(ktask_start(job, WORK_BASE, NR_UNITS, &ctl), 0);
	memset(&ctl, 0xff, sizeof(ctl));
}

static void helpers_finish_alone(void **state)
{
	uint64_t end_ns = ktest_now_ns() + HANG_NS;
	struct ktask_progress progress = KTASK_PROGRESS_INIT;
	struct work work = { 0 };
	struct ktask_job *job;

	need_sure_helper();
	work_begin(&work, NR_UNITS);
	started_from_a_copy(&job, &work);
	while (ktask_poll(job, &progress) == -EINPROGRESS) {
		assert_true(ktest_now_ns() < end_ns);
		assert_true(progress.units_done <= NR_UNITS);
		nap_us(100);
	}
	assert_int_equal(ktask_poll(job, &progress), 0);
	assert_int_equal(progress.units_done, NR_UNITS);
	assert_int_equal(progress.units_total, NR_UNITS);
	assert_int_equal(work.nr_chunks, work.nr_helper_chunks);
	assert_int_equal(ktask_wait(job), 0);
	assert_true(work_done_once(&work));
	work_end(&work);
}

struct cpus_seen {
	cpu_set_t wanted;
	uint32_t nr_wrong;
};

static int compare_cpus(struct work *work, size_t from, size_t to)
{
	struct cpus_seen *seen = work->arg;
	cpu_set_t now;

	if (gettid() == work->caller)
		return 0;
	if (sched_getaffinity(0, sizeof(now), &now) ||
	    !CPU_EQUAL(&now, &seen->wanted))
		__atomic_add_fetch(&seen->nr_wrong, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Nobody looks after them: they must not be kept off the CPU that their caller
 * happened to be on.  New threads, and such as were kept off it before. */
static void helpers_run_where_it_is_idle(void **state)
{
	struct cpus_seen seen = { .nr_wrong = 0 };

	need_sure_helper();
	assert_int_equal(
		sched_getaffinity(0, sizeof(seen.wanted), &seen.wanted), 0);
	for (int i = 0; i < 3; i++) {
		struct work work = { .also = compare_cpus, .arg = &seen };
		struct ktask_ctl ctl = work_ctl(&work, 1);
		uint64_t end_ns = ktest_now_ns() + HANG_NS;
		struct ktask_job *job;

		work_begin(&work, NR_UNITS);
		assert_int_equal(ktask_start(&job, WORK_BASE, NR_UNITS, &ctl),
				 0);
		while (ktask_poll(job, NULL) == -EINPROGRESS) {
			assert_true(ktest_now_ns() < end_ns);
			nap_us(100);
		}
		assert_int_equal(ktask_wait(job), 0);
		assert_true(work.nr_helper_chunks > 0);
		assert_int_equal(seen.nr_wrong, 0);
		work_end(&work);
		work.also = NULL;
		work_begin(&work, NR_UNITS);
		assert_int_equal(ktask_run(WORK_BASE, NR_UNITS, &ctl), 0);
		work_end(&work);
	}
}

static void *wait_for_job(void *job)
{
	return (void *)(intptr_t)ktask_wait(job);
}

static int use_a_little(struct work *work, size_t from, size_t to)
{
	burn_us(20);
	return 0;
}

/* The two threads' clocks have nothing to do with each other. */
static void another_thread_waits(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { .also = use_a_little };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	struct ktask_job *job;
	pthread_t thread;
	void *error;

	burn_us(50000);
	work_begin(&work, NR_UNITS);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_start(&job, WORK_BASE, NR_UNITS, &ctl), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_job, job), 0);
	assert_int_equal(pthread_join(thread, &error), 0);
	assert_ptr_equal(error, NULL);
	assert_true(work_done_once(&work));
	assert_true(result.cpu_ns > 0);
	/* One more, for a helper that came too late to do a chunk. */
	assert_true(result.cpu_ns <= result.wall_ns * (result.threads + 1));
	work_end(&work);
}

/* Not what this thread does between start and wait. */
static void only_work_counts_as_cpu_time(void **state)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct work work = { 0 };
	struct ktask_ctl ctl = work_ctl(&work, 1);
	struct ktask_job *job;

	work_begin(&work, 10);
	ktask_ctl_set_max_threads(&ctl, 1);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_start(&job, WORK_BASE, 10, &ctl), 0);
	for (uint64_t end_ns = ktest_thread_cpu_ns() + 300000000;
	     ktest_thread_cpu_ns() < end_ns;)
		;
	assert_int_equal(ktask_wait(job), 0);
	assert_true(result.cpu_ns < 250000000);
	work_end(&work);
}

static void many_are_under_way(void **state)
{
	static struct work works[NR_JOBS];
	struct ktask_job *jobs[NR_JOBS];

	for (int i = 0; i < NR_JOBS; i++) {
		struct ktask_ctl ctl = work_ctl(&works[i], 1 + (size_t)i % 5);

		work_begin(&works[i], NR_UNITS);
		assert_int_equal(
			ktask_start(&jobs[i], WORK_BASE, NR_UNITS, &ctl), 0);
	}
	/* Neither first in first out nor the reverse. */
	for (int i = 0; i < NR_JOBS; i++) {
		int at = i * 7 % NR_JOBS;

		assert_int_equal(ktask_wait(jobs[at]), 0);
		assert_true(work_done_once(&works[at]));
		work_end(&works[at]);
	}
}

struct self_seeing {
	struct ktask_job *job;
	uint32_t nr_wrong;
};

/* From inside its chunks, while the waiting thread changes the job. */
static int poll_own_job(struct work *work, size_t from, size_t to)
{
	struct self_seeing *self = work->arg;
	struct ktask_job *job = __atomic_load_n(&self->job, __ATOMIC_ACQUIRE);
	struct ktask_progress progress = KTASK_PROGRESS_INIT;

	burn_us(5);
	if (!job)
		return 0;
	ktask_poll(job, &progress);
	if (progress.units_done > progress.units_total ||
	    progress.units_total != NR_UNITS)
		__atomic_add_fetch(&self->nr_wrong, 1, __ATOMIC_RELAXED);
	return 0;
}

static void chunks_may_poll_their_job(void **state)
{
	for (int i = 0; i < 50; i++) {
		struct self_seeing self = { 0 };
		struct work work = { .also = poll_own_job, .arg = &self };
		struct ktask_ctl ctl = work_ctl(&work, 1);
		struct ktask_job *job;

		work_begin(&work, NR_UNITS);
		assert_int_equal(ktask_start(&job, WORK_BASE, NR_UNITS, &ctl),
				 0);
		__atomic_store_n(&self.job, job, __ATOMIC_RELEASE);
		assert_int_equal(ktask_wait(job), 0);
		assert_int_equal(self.nr_wrong, 0);
		assert_true(work_done_once(&work));
		work_end(&work);
	}
}

/* A chunk starts a job, which outlives the job that the chunk is of. */
static int start_another(struct work *work, size_t from, size_t to)
{
	struct work *inner = work->arg;
	struct ktask_ctl ctl = work_ctl(inner, 1);

	if (from)
		return 0;
	inner->caller = gettid();
	return ktask_start((struct ktask_job **)&inner->arg, WORK_BASE,
			   NR_UNITS, &ctl);
}

static void jobs_outlive_the_chunk_that_starts_them(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct work inner = { 0 };
		struct work outer = { .also = start_another, .arg = &inner };

		work_begin(&inner, NR_UNITS);
		work_begin(&outer, 50);
		assert_int_equal(work_run(&outer), 0);
		assert_true(work_done_once(&outer));
		assert_int_equal(ktask_wait(inner.arg), 0);
		assert_true(work_done_once(&inner));
		work_end(&outer);
		work_end(&inner);
	}
}

KTEST_MAIN(KTEST(helpers_run_where_it_is_idle),
	   KTEST(one_thread_does_it_when_waiting), KTEST(helpers_finish_alone),
	   KTEST(another_thread_waits), KTEST(only_work_counts_as_cpu_time),
	   KTEST(many_are_under_way), KTEST(chunks_may_poll_their_job),
	   KTEST(jobs_outlive_the_chunk_that_starts_them))
