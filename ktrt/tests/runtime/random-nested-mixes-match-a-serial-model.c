/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Random nested graphs in which all features are mixed do what a sequential program does.
 * Tasks name data by address and by range, weakly or not, commute and add, are undeferred
 * or final, have priorities and nodes; they release data before their end, wait for all,
 * for data and for groups, cancel groups, fail, yield, do loops, and run graphs that were made
 * once.  Each use finds the value that the use before it left, nobody writes beside
 * others, and a task is skipped just if its data or its group is why.  The same on one
 * CPU, with few threads, and on a machine of several nodes.
 *
 * KTRT_TEST_MIXES is how many there are each time, KTRT_TEST_MIX the seed of the only one.
 */
#include "support/counted_threads.h"
#include "support/made_up_nodes.h"
#include "support/mixes_run.h"

#include <pthread.h>

#define NODES 4

/* ---- tests ---- */

static uint64_t seed;

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *wanted = getenv(name);

	return wanted ? strtoull(wanted, NULL, 10) : otherwise;
}

static uint64_t next_seed(void)
{
	return from_environment("KTRT_TEST_MIX", ktest_random(&seed));
}

/* Each alone, by a thread that is attached; then by tasks, some at a time. */
static void run_mixes(void)
{
	unsigned nr = (unsigned)from_environment(
		"KTRT_TEST_MIXES", KTEST_TSAN || KTEST_ASAN ? 24 : 200);

	for (unsigned i = 0; i < nr / 2 && !get(nr_wrong); i++)
		assert_int_equal(run_mix(next_seed(), false), 0);
	for (unsigned i = 0; i < nr / 2 && !get(nr_wrong); i++)
		assert_int_equal(
			ktrt_spawn(mix_beside, (void *)(uintptr_t)next_seed()),
			0);
	assert_int_equal(ktrt_wait(), 0);
	assert_int_equal(get(nr_wrong), 0);
}

static int over;

/* What would hang is a failure once nothing has ended for a minute. */
static void *watch_mixes(void *arg)
{
	while (!get(over)) {
		unsigned long seen = get(nr_done);

		if (holds_soon(get(nr_done) != seen || get(over)))
			continue;
		fprintf(stderr, "# hangs after %lu tasks\n", seen);
		_exit(1);
	}
	return NULL;
}

static void run_watched(void (*test)(void))
{
	pthread_t watcher;

	seed = ktest_seed();
	set(over, 0);
	assert_int_equal(pthread_create(&watcher, NULL, watch_mixes, NULL), 0);
	test();
	set(over, 1);
	assert_int_equal(pthread_join(watcher, NULL), 0);
}

static void mix_each_way(void)
{
	in_each_way(run_mixes);
}

static void mixes_match(void **state)
{
	run_watched(mix_each_way);
}

static int first_cpu(const cpu_set_t *cpus)
{
	int cpu = 0;

	while (!CPU_ISSET(cpu, cpus))
		cpu++;
	return cpu;
}

static void mix_every_other_way(void)
{
	for (size_t i = 0; i < NR_WAYS; i += 2) {
		start_way(&all_ways[i]);
		run_mixes();
		assert_int_equal(ktrt_stop(), 0);
	}
}

/* All threads, also the one that makes and waits. */
static void mixes_match_on_one_cpu(void **state)
{
	cpu_set_t before, one;

	CPU_ZERO(&one);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_SET(first_cpu(&before), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	run_watched(mix_every_other_way);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void mix_with_few_threads(void)
{
	for (unsigned threads = 1; threads <= 4; threads++) {
		struct ktrt_options options = KTRT_OPTIONS_INIT;

		options.workers = threads > 2 ? 2 : threads;
		options.max_threads = threads;
		options.flags = threads % 2 ? KTRT_NO_UMT : 0;
		assert_int_equal(ktrt_start(&options), 0);
		run_mixes();
		assert_true(workers_are_at_most(threads));
		assert_int_equal(ktrt_stop(), 0);
	}
}

static void mixes_match_with_few_threads(void **state)
{
	run_watched(mix_with_few_threads);
}

static void mixes_match_on_several_nodes(void **state)
{
	made_up_nodes_begin(NODES);
	run_watched(mix_every_other_way);
	made_up_nodes_end();
}

KTEST_MAIN(KTEST(mixes_match), KTEST(mixes_match_on_one_cpu),
	   KTEST(mixes_match_with_few_threads),
	   KTEST(mixes_match_on_several_nodes))
