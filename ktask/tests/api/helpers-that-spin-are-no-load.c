/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where helpers may run on idle CPUs only, one that spins for the next job of its own
 * process does not count as others' load, or it would be refused to that job.
 */
#include "support/one_helper.h"
#include "tree.h"

#include "user/limits/limits.h"
#include "util/file.h"

static struct tree tree;

static void put_running(unsigned nr)
{
	char text[64];

	snprintf(text, sizeof(text), "0.00 0.00 0.00 %u/1000 4711\n", nr);
	tree_put(&tree, "/proc/loadavg", text);
}

/* The helper's clock stands still: it spins from now on. */
static void await_spinning(void)
{
	uint64_t since_ns = ktest_now_ns();

	while (!pool_spinning())
		nap_or_fail(since_ns);
}

static void check_spinning(void)
{
	unsigned nr;

	if (cpus_count(&pool_cpus) < (unsigned)sysconf(_SC_NPROCESSORS_ONLN))
		ktest_skip(
			"not all CPUs are allowed: running threads tell nothing");
	nr = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	/* The caller, the helper, and threads on all CPUs but these two. */
	put_running(nr);
	assert_int_equal(limits_idle_threads(1), 2);
	assert_true(limits_has_idle_cpu(&pool_cpus));
	/* One more is others' load. */
	put_running(nr + 1);
	assert_int_equal(limits_idle_threads(1), 1);
}

static int begin_pool(void **state)
{
	tree_begin(&tree);
	tree_put_cpus(&tree);
	return 0;
}

static int end_pool(void **state)
{
	helper_is_late = true;
	file_root = "";
	tree_end(&tree);
	return 0;
}

static void a_job_may_have_the_helper_that_spins(void **state)
{
	enter_pool();
	await_spinning();
	file_root = tree.root;
	check_spinning();
}

KTEST_MAIN(cmocka_unit_test_setup_teardown(a_job_may_have_the_helper_that_spins,
					   begin_pool, end_pool))
