/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task may wait for what its maker does later: the maker does not do it
 * itself, however full its queue is and however many children it has.
 */
#include "support/runs.h"

#define TRIFLES 600
#define READERS 100

static int ends[2]; /* of a pipe */
static unsigned long done;

static int count(void *arg)
{
	more(done);
	return 0;
}

static int read_one(void *arg)
{
	char byte;

	return read(ends[0], &byte, 1) == 1 ? count(NULL) : -EIO;
}

static int write_one(void *arg)
{
	return write(ends[1], "x", 1) == 1 ? count(NULL) : -EIO;
}

/* Nobody else takes the first ones: the only worker makes them. */
static int read_then_write(void *arg)
{
	int error = 0;

	for (int i = 0; i < TRIFLES && !error; i++)
		error = ktrt_spawn(count, NULL);
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
	set(done, 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(ktrt_start(options), 0);
	assert_int_equal(ktrt_spawn(maker, NULL), 0);
	assert_true(comes_to(done, wanted));
	assert_int_equal(ktrt_stop(), 0);
	close(ends[0]);
	close(ends[1]);
}

static void full_queues_wait_for_nobody(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = 1;
	run_maker(read_then_write, &options, TRIFLES + 2);
	options.flags = KTRT_NO_UMT;
	run_maker(read_then_write, &options, TRIFLES + 2);
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

KTEST_MAIN(KTEST(full_queues_wait_for_nobody),
	   KTEST(many_children_wait_for_nobody))
