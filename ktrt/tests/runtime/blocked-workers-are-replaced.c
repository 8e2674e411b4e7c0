/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A worker that blocks in the kernel leaves its core to others: tasks that
 * only other tasks can free all end, also when all workers block at once; after
 * it one worker a core works, also when many blocked and all wake at the same
 * time.
 */
#include "support/counted_threads.h"

#define PAIRS 24

static int pipes[PAIRS][2];
static unsigned long done;

static int read_one(void *arg)
{
	char byte;

	if (read(((int *)arg)[0], &byte, 1) != 1)
		return -EIO;
	more(done);
	return 0;
}

static int write_one(void *arg)
{
	return write(((int *)arg)[1], "x", 1) == 1 ? 0 : -EIO;
}

/* The readers come first and take every worker that there is. */
static int block_everybody(void *arg)
{
	int error = 0;

	for (int i = 0; i < PAIRS && !error; i++)
		error = ktrt_spawn(read_one, pipes[i]);
	nap_us(20000);
	for (int i = 0; i < PAIRS && !error; i++)
		error = ktrt_spawn(write_one, pipes[i]);
	return error;
}

static void open_pipes(void)
{
	set(done, 0);
	for (int i = 0; i < PAIRS; i++)
		assert_int_equal(pipe(pipes[i]), 0);
}

static void close_pipes(void)
{
	for (int i = 0; i < PAIRS; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

static void blocked_ones_are_freed_by_others(void)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	open_pipes();
	assert_int_equal(ktrt_run(block_everybody, NULL), 0);
	assert_int_equal(get(done), PAIRS);
	assert_int_equal(ktrt_info_get(&info), 0);
	assert_true(workers_are_at_most(info.max_threads));
	close_pipes();
}

/* Without UMT too: slower, as a stall has to be noticed. */
static void in_all_ways(void **state)
{
	in_each_way(blocked_ones_are_freed_by_others);
}

static int sleep_a_little(void *arg)
{
	nap_us(2000);
	return 0;
}

static void sleepers_overlap(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	struct ktrt_info info = KTRT_INFO_INIT;

	options.workers = 1;
	options.flags = KTRT_UMT_FIRST;
	assert_int_equal(ktrt_start(&options), 0);
	/* Who replaces may itself get no CPU for so long. */
	for (int n = 0; n < 20 && !info.replaced; n++) {
		for (int i = 0; i < 200; i++)
			assert_int_equal(ktrt_spawn(sleep_a_little, NULL), 0);
		assert_int_equal(ktrt_wait(), 0);
		assert_int_equal(ktrt_info_get(&info), 0);
		assert_true(workers_are_at_most(info.max_threads));
		if (!strcmp(info.backend, "none"))
			break;
	}
	printf("# by %s: %u threads, %llu replaced\n", info.backend,
	       info.threads, (unsigned long long)info.replaced);
	if (strcmp(info.backend, "none")) {
		assert_true(info.threads > 1);
		assert_true(info.replaced > 0);
	}
	assert_int_equal(ktrt_stop(), 0);
}

#define READERS 8

static int stop;

/* There is always something to do: nobody leaves for want of tasks. */
static int spin_on(void *arg)
{
	uint64_t until = ktest_now_ns() + 50000;

	while (ktest_now_ns() < until)
		;
	return get(stop) ? 0 : ktrt_spawn(spin_on, NULL);
}

static struct ktrt_info info_now(void)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	assert_int_equal(ktrt_info_get(&info), 0);
	return info;
}

static void of_many_that_are_ready_one_stays(void **state)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	uint64_t before;

	options.workers = 1;
	options.flags = KTRT_UMT_FIRST;
	assert_int_equal(ktrt_start(&options), 0);
	if (strcmp(info_now().backend, "bpf")) {
		assert_int_equal(ktrt_stop(), 0);
		ktest_skip("the kernel tells who woke only by BPF");
	}
	open_pipes();
	set(stop, 0);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(ktrt_spawn(read_one, pipes[i]), 0);
	assert_true(holds_soon(info_now().threads >= READERS));
	for (int i = 0; i < 2 * READERS; i++)
		assert_int_equal(ktrt_spawn(spin_on, NULL), 0);
	assert_true(holds_soon(info_now().threads > READERS));
	before = info_now().surrenders;
	for (int i = 0; i < READERS; i++)
		assert_int_equal(write_one(pipes[i]), 0);
	assert_true(holds_soon(info_now().surrenders >= before + READERS - 2));
	set(stop, 1);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(done), READERS);
	close_pipes();
	assert_int_equal(ktrt_stop(), 0);
}

KTEST_MAIN(KTEST(in_all_ways), KTEST(sleepers_overlap),
	   KTEST(of_many_that_are_ready_one_stays))
