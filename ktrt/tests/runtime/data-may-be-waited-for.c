/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Who waits for some data waits for the tasks that use it, and for no others.
 */
#include "support/runs.h"

static int data, others, pipe_ends[2];
static unsigned writes, reads, wrong, runs;

static int write_late(void *arg)
{
	nap_us(300);
	data++;
	more(writes);
	return 0;
}

static int read_late(void *arg)
{
	int before = data;

	nap_us(300);
	if (data != before)
		more(wrong);
	more(reads);
	return 0;
}

/* Until whoever waits for other data goes on. */
static int block_for_waiter(void *arg)
{
	char byte;

	return read(pipe_ends[0], &byte, 1) == 1 ? 0 : -EIO;
}

static int fail_late(void *arg)
{
	nap_us(100);
	return 44;
}

static int spawn_on(ktrt_func func, const void *addr, unsigned mode)
{
	const struct ktrt_dep dep = { addr, 0, mode };
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = &dep;
	attr.nr_deps = 1;
	return ktrt_spawn_attr(func, NULL, &attr);
}

static int wait_on(const void *addr, unsigned mode)
{
	const struct ktrt_dep dep = { addr, 0, mode };

	return ktrt_wait_for(&dep, 1);
}

static int use_and_wait(void *arg)
{
	int before = data;

	set(writes, 0);
	set(reads, 0);
	if (spawn_on(block_for_waiter, &others, KTRT_OUT))
		return -EIO;
	for (int i = 0; i < 5; i++)
		if (spawn_on(write_late, &data, KTRT_INOUT))
			return -EIO;
	if (wait_on(&data, KTRT_IN) || data != before + 5)
		return -EINVAL;
	for (int i = 0; i < 5; i++)
		if (spawn_on(read_late, &data, KTRT_IN))
			return -EIO;
	/* Nobody writes: readers are not waited for. */
	if (wait_on(&data, KTRT_IN) || wait_on(&data, KTRT_OUT))
		return -EINVAL;
	if (get(reads) != 5 || get(writes) != 5)
		return -EINVAL;
	data = before;
	if (wait_on(&writes, KTRT_INOUT) || ktrt_wait_for(NULL, 0))
		return -EINVAL;
	if (write(pipe_ends[1], "x", 1) != 1)
		return -EIO;
	return ktrt_wait();
}

static void wait_in_turn(void)
{
	for (int i = 0; i < 5; i++) {
		assert_int_equal(use_and_wait(NULL), 0);
		assert_int_equal(ktrt_run(use_and_wait, NULL), 0);
	}
	/* The code is for whoever waits for all; here it is told of. */
	assert_int_equal(spawn_on(fail_late, &data, KTRT_INOUT), 0);
	assert_int_equal(wait_on(&data, KTRT_IN), -ECANCELED);
	assert_int_equal(ktrt_wait(), 44);
	assert_int_equal(wait_on(&data, 0), -EINVAL);
	assert_int_equal(get(wrong), 0);
}

static void only_who_uses_it_is_waited_for(void **state)
{
	assert_int_equal(wait_on(&data, KTRT_IN), -ESRCH);
	assert_int_equal(pipe(pipe_ends), 0);
	in_each_way(wait_in_turn);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

static int count_run(void *arg)
{
	more(runs);
	return 0;
}

/* What follows tells of one datum, or of none: it is not the wait that tells of all. */
static void all_stays_spoilt(void)
{
	set(runs, 0);
	assert_int_equal(spawn_on(fail_late, &data, KTRT_OUT), 0);
	assert_int_equal(spawn_on(fail_late, &others, KTRT_OUT), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wait_on(&data, KTRT_IN), -ECANCELED);
		assert_int_equal(wait_on(&others, KTRT_IN), -ECANCELED);
	}
	assert_int_equal(ktrt_run(fail_late, NULL), 44);
	assert_int_equal(wait_on(&data, KTRT_IN), -ECANCELED);
	assert_int_equal(spawn_on(count_run, &data, KTRT_IN), 0);
	assert_int_equal(spawn_on(count_run, &others, KTRT_INOUT), 0);
	assert_int_equal(ktrt_wait(), 44);
	assert_int_equal(get(runs), 0);
	/* That one has told. */
	assert_int_equal(wait_on(&data, KTRT_IN), 0);
	assert_int_equal(spawn_on(count_run, &others, KTRT_IN), 0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(runs), 1);
}

static void it_forgives_nothing(void **state)
{
	in_each_way(all_stays_spoilt);
}

KTEST_MAIN(KTEST(only_who_uses_it_is_waited_for), KTEST(it_forgives_nothing))
