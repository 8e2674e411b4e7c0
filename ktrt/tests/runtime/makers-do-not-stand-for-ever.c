/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task may wait for what its maker does later: the maker does not do it
 * itself, however full its queue is and however many children it has.
 */
#include "support/pipe_tasks.h"

#define SHORT_TASKS 600
#define READERS 100
#define JOBS 5000
#define PER_READER 250

static int write_one(void *arg)
{
	return write(pipe_ends[1], "x", 1) == 1 ? count_task(NULL) : -EIO;
}

/* Nobody else takes the first ones: the only worker makes them. */
static int read_then_write(void *arg)
{
	int error = 0;

	for (int i = 0; i < SHORT_TASKS && !error; i++)
		error = ktrt_spawn(count_task, NULL);
	if (!error)
		error = ktrt_spawn(read_one, NULL);
	if (!error)
		error = ktrt_spawn(write_one, NULL);
	return error;
}

static int make_readers(void *arg)
{
	int error = 0;

	for (int i = 0; i < READERS && !error; i++)
		error = ktrt_spawn(read_one, NULL);
	for (int i = 0; i < READERS && !error; i++)
		error = write_one(NULL);
	return error;
}

static void run_maker(ktrt_func maker, const struct ktrt_options *options,
		      unsigned long wanted)
{
	set(nr_done, 0);
	assert_int_equal(pipe(pipe_ends), 0);
	assert_int_equal(ktrt_start(options), 0);
	assert_int_equal(ktrt_spawn(maker, NULL), 0);
	assert_true(comes_to(nr_done, wanted));
	assert_int_equal(ktrt_stop(), 0);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

static void full_queues_wait_for_nobody(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = 1;
	run_maker(read_then_write, &options, SHORT_TASKS + 2);
	options.flags = KTRT_NO_UMT;
	run_maker(read_then_write, &options, SHORT_TASKS + 2);
}

static void many_children_wait_for_nobody(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.max_children = 16;
	options.max_threads = 2 * READERS;
	run_maker(make_readers, &options, 2 * READERS);
	options.flags = KTRT_NO_UMT;
	run_maker(make_readers, &options, 2 * READERS);
}

/* A function for each task, and the same one for the runtime. */
struct job {
	ktrt_func func;
	int nr;
};

static int do_job(void *arg)
{
	const struct job *job = arg;

	return job->nr % PER_READER ? count_task(NULL) : read_one(NULL);
}

static int make_jobs(void *arg)
{
	struct job job = { do_job, 1 };
	int error = 0;

	for (int i = 0; i < 2 * JOBS && !error; i++)
		error = ktrt_spawn_copy(ktrt_dispatch, &job, sizeof(job));
	if (!error)
		error = ktrt_wait();
	for (job.nr = 0; job.nr < JOBS && !error; job.nr++)
		error = ktrt_spawn_copy(ktrt_dispatch, &job, sizeof(job));
	for (int i = 0; i < JOBS && !error; i += PER_READER)
		error = write_one(NULL);
	return error;
}

static void dispatched_ones_wait_for_nobody(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = 2;
	options.max_threads = 2 * READERS;
	for (int i = 0; i < 5; i++)
		run_maker(make_jobs, &options, 3 * JOBS + JOBS / PER_READER);
	options.flags = KTRT_NO_UMT;
	run_maker(make_jobs, &options, 3 * JOBS + JOBS / PER_READER);
}

KTEST_MAIN(KTEST(full_queues_wait_for_nobody),
	   KTEST(many_children_wait_for_nobody),
	   KTEST(dispatched_ones_wait_for_nobody))
