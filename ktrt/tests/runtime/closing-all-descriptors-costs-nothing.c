/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that closes all descriptors, the leader's among them, has its tasks
 * run all the same, and an idle runtime uses no core.
 */
#include "support/runs.h"

#include <unistd.h>

#define IDLE_US 300000

static int add_one(void *arg)
{
	more(*(unsigned *)arg);
	return 0;
}

static bool is_idle(void)
{
	uint64_t before_ns = ktest_cpu_ns();

	nap_us(IDLE_US);
	return ktest_cpu_ns() - before_ns < IDLE_US * 1000 / 3;
}

static int closes_all(void *way)
{
	unsigned done = 0;

	start_way(way);
	ktest_check(ktrt_run(add_one, &done) == 0);
	for (int fd = 3; fd < 100; fd++)
		close(fd);
	ktest_check(ktrt_run(add_one, &done) == 0);
	/* UMT may still be loading. */
	ktest_check(holds_soon(is_idle()));
	ktest_check(ktrt_run(add_one, &done) == 0 && done == 3);
	return 0;
}

static void an_idle_leader_finds_other_rest(void **state)
{
	if (KTEST_TSAN)
		ktest_skip("a descriptor that is closed beside its user");
	for (size_t i = 0; i < NR_WAYS; i++)
		assert_int_equal(
			ktest_in_child(closes_all, (void *)&all_ways[i]), 0);
}

KTEST_MAIN(KTEST(an_idle_leader_finds_other_rest))
