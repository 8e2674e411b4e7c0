/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job with a fixed count has all of its threads from the start, and does not
 * try others; one with a maximum begins with that.
 */
#define MANY_CPUS 24
#include "support/many_cpus.h"

#include "support/work.h"

#include "jobs.h"
#include "tree.h"

#include "util/file.h"
#include "user/user_job.h"

static struct tree tree;

/* A machine that idles: where helpers starve jobs are given fewer. */
static int make_machine(void **state)
{
	tree_begin(&tree);
	tree_put(&tree, "/sys/devices/system/cpu/online", "0-23\n");
	tree_put(&tree, "/proc/loadavg", "0.00 0.00 0.00 1/100 1234\n");
	file_root = tree.root;
	return 0;
}

static int remove_machine(void **state)
{
	tree_end(&tree);
	return 0;
}

/* Threads of the job at each of the caller's looks. */
static int note_threads(const struct ktask_progress *progress, void *arg)
{
	unsigned *least_most = arg;

	if (progress->units_done == progress->units_total)
		return 0;
	if (progress->threads < least_most[0])
		least_most[0] = progress->threads;
	if (progress->threads > least_most[1])
		least_most[1] = progress->threads;
	return 0;
}

static int burn_units(void *start, void *end, void *arg)
{
	burn_us((unsigned)((char *)end - (char *)start) * 20);
	return 0;
}

static void run_threads(struct ktask_ctl *ctl, unsigned least_most[2])
{
	least_most[0] = UINT32_MAX;
	least_most[1] = 0;
	ktask_ctl_set_progress(ctl, note_threads, least_most, 1);
	assert_int_equal(ktask_run(NULL, 20000, ctl), 0);
}

static void all_from_the_start_to_the_end(void **state)
{
	unsigned threads = 7, seen[2];
	DEFINE_KTASK_CTL(ctl, burn_units, NULL, 1);

	if (job_threads() < threads)
		ktest_skip("a job gets %u threads here", job_threads());
	ktask_ctl_set_fixed_threads(&ctl, threads);
	run_threads(&ctl, seen);
	assert_int_equal(seen[1], threads);
	assert_int_equal(seen[0], threads);
}

static void a_maximum_is_begun_with(void **state)
{
	unsigned threads = 7, seen[2];
	DEFINE_KTASK_CTL(ctl, burn_units, NULL, 1);

	if (job_threads() < threads)
		ktest_skip("a job gets %u threads here", job_threads());
	ktask_ctl_set_max_threads(&ctl, threads);
	run_threads(&ctl, seen);
	assert_int_equal(seen[1], threads);
}

static void policy_is_above_it(void **state)
{
	unsigned seen[2];
	DEFINE_KTASK_CTL(ctl, burn_units, NULL, 1);

	need_helper();
	ktask_ctl_set_fixed_threads(&ctl, 1000);
	run_threads(&ctl, seen);
	assert_in_range(seen[1], 1, MANY_CPUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(all_from_the_start_to_the_end),
		KTEST(a_maximum_is_begun_with),
		KTEST(policy_is_above_it),
	};

	return cmocka_run_group_tests(tests, make_machine, remove_machine);
}
