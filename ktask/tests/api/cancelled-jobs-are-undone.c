/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask_cancel() before a job has begun, in its middle, after its end, from a
 * chunk or another thread: no more chunks are claimed, and what was done is
 * undone exactly, unless all of it was done.
 */
#include "support/work.h"

#define MANY_CPUS 6
#include "support/many_cpus.h"

#define NR_UNITS 2000
#define NR_RANDOM (KTEST_TSAN || KTEST_ASAN ? 100 : 600)

static struct ktask_job *start_job(struct work *work, unsigned max_threads)
{
	struct ktask_ctl ctl = work_ctl(work, 1);
	struct ktask_job *job;

	work_begin(work, NR_UNITS);
	ktask_ctl_set_max_threads(&ctl, max_threads);
	ktask_ctl_set_chunk_us(&ctl, 20);
	assert_int_equal(ktask_start(&job, WORK_BASE, NR_UNITS, &ctl), 0);
	return job;
}

static void before_it_began_nothing_runs(void **state)
{
	struct work work = { 0 };
	struct ktask_job *job = start_job(&work, 1);

	ktask_cancel(job);
	ktask_cancel(job);
	assert_int_equal(ktask_poll(job, NULL), 0);
	assert_int_equal(ktask_wait(job), -ECANCELED);
	assert_int_equal(work.nr_chunks, 0);
	assert_true(work_undone_exactly(&work, NULL));
	work_end(&work);
}

static void after_its_end_it_has_succeeded(void **state)
{
	struct work work = { 0 };
	struct ktask_job *job;

	need_sure_helper();
	job = start_job(&work, 0);
	while (ktask_poll(job, NULL) == -EINPROGRESS)
		nap_us(100);
	ktask_cancel(job);
	assert_int_equal(ktask_wait(job), 0);
	assert_true(work_done_once(&work));
	work_end(&work);
}

/* arg: where the job is kept. */
static int cancel_in_chunk(struct work *work, size_t from, size_t to)
{
	burn_us(10);
	if (from <= NR_UNITS / 4 && NR_UNITS / 4 < to)
		ktask_cancel(__atomic_load_n((struct ktask_job **)work->arg,
					     __ATOMIC_ACQUIRE));
	return 0;
}

/* With one thread, too: then nobody else could stop it either. */
static void in_a_chunk_it_stops(void **state)
{
	struct ktask_job *job;
	struct work work = { .also = cancel_in_chunk, .arg = &job };
	size_t nr_done;

	job = start_job(&work, 1);
	assert_int_equal(ktask_wait(job), -ECANCELED);
	assert_true(work_undone_exactly(&work, &nr_done));
	assert_true(nr_done > NR_UNITS / 4);
	assert_true(nr_done < NR_UNITS);
	work_end(&work);
}

struct cancelled {
	struct ktask_job *job;
	unsigned after_us;
	uint32_t done; /* ktask_cancel() has returned: the job may go */
};

static int burn_until_cancelled(struct work *work, size_t from, size_t to)
{
	struct cancelled *it = work->arg;

	burn_us(10);
	if (to == NR_UNITS && !wait_for_flag(&it->done))
		return -ETIME;
	return 0;
}

static void *cancel_later(void *arg)
{
	struct cancelled *it = arg;

	nap_us(it->after_us);
	ktask_cancel(it->job);
	set_flag(&it->done);
	return NULL;
}

/* At a random time, while several threads are in it. */
static bool one_at_random(uint64_t *seed)
{
	struct cancelled it = { 0 };
	struct work work = { .also = burn_until_cancelled, .arg = &it };
	pthread_t thread;
	int error;

	it.after_us = (unsigned)ktest_random_below(seed, 3000);
	it.job = start_job(&work, 1 + (unsigned)ktest_random_below(seed, 6));
	assert_int_equal(pthread_create(&thread, NULL, cancel_later, &it), 0);
	error = ktask_wait(it.job);
	assert_true(error == -ECANCELED || error == 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (error)
		assert_true(work_undone_exactly(&work, NULL));
	else
		assert_true(work_done_once(&work));
	work_end(&work);
	return error;
}

static void at_any_time_undo_is_exact(void **state)
{
	uint64_t seed = ktest_seed();
	int nr_cancelled = 0;

	for (int i = 0; i < NR_RANDOM; i++)
		nr_cancelled += one_at_random(&seed);
	assert_true(nr_cancelled > 0);
}

/* The chunk's own error was first. */
static int cancel_and_fail(struct work *work, size_t from, size_t to)
{
	if (from < NR_UNITS / 2)
		return 0;
	ktask_cancel(__atomic_load_n((struct ktask_job **)work->arg,
				     __ATOMIC_ACQUIRE));
	return -EIO;
}

static void the_first_error_wins(void **state)
{
	struct ktask_job *job;
	struct work work = { .also = cancel_and_fail, .arg = &job };

	job = start_job(&work, 1);
	assert_int_equal(ktask_wait(job), -ECANCELED);
	assert_true(work_undone_exactly(&work, NULL));
	work_end(&work);
}

KTEST_MAIN(KTEST(before_it_began_nothing_runs),
	   KTEST(after_its_end_it_has_succeeded), KTEST(in_a_chunk_it_stops),
	   KTEST(at_any_time_undo_is_exact), KTEST(the_first_error_wins))
