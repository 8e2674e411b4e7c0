/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Random nested graphs in which nothing fails, against a sequential model.  Tasks name data
 * weakly or not, make children that use a part of it, wait for all or for some data,
 * release data before their end, and commute, add, are undeferred or final at random.
 * Each runs, each use must find the value that the sequential program would find there,
 * and nobody may write while others use a datum.
 *
 * KTRT_TEST_GRAPHS is how many there are each time.
 */
#include "support/mixes_run.h"

static uint64_t seed;

static unsigned nr_graphs(void)
{
	const char *wanted = getenv("KTRT_TEST_GRAPHS");

	if (wanted)
		return (unsigned)atoi(wanted);
	return KTEST_TSAN || KTEST_ASAN ? 16 : 160;
}

/* Each alone, by a thread that is attached; then by tasks, some at a time. */
static void run_graphs(void)
{
	unsigned nr = nr_graphs();

	for (unsigned i = 0; i < nr / 2; i++)
		assert_int_equal(run_mix(ktest_random(&seed), true), 0);
	for (unsigned i = 0; i < nr / 2; i++)
		assert_int_equal(
			ktrt_spawn(good_mix_beside,
				   (void *)(uintptr_t)ktest_random(&seed)),
			0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(nr_wrong), 0);
}

static void sequential_values_are_found(void **state)
{
	seed = ktest_seed();
	in_each_way(run_graphs);
}

/* So few that tasks which wait for what they name weakly have them all. */
static void few_threads_suffice(void **state)
{
	seed = ktest_seed();
	for (unsigned threads = 1; threads <= 4; threads++) {
		struct ktrt_options options = KTRT_OPTIONS_INIT;

		options.workers = threads > 2 ? 2 : threads;
		options.max_threads = threads;
		options.flags = KTRT_NO_UMT;
		assert_int_equal(ktrt_start(&options), 0);
		run_graphs();
		assert_int_equal(ktrt_stop(), 0);
	}
}

KTEST_MAIN(KTEST(sequential_values_are_found), KTEST(few_threads_suffice))
