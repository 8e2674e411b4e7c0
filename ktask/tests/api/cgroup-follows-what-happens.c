/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * While a job runs: others in the group use its quota, the quota runs out, the
 * process is moved, the group is removed.  Where nothing limits, nothing is
 * read for a second.
 */
#include "ktest.h"
#include "tree.h"

#include "user/limits/cgroup.h"

#define MS 1000000ull
#define A "/cg/a"
#define B "/cg/b"

static struct tree tree;
static struct cgroup cg;
static struct cgroup_own own;
static uint64_t now_ns;

static int make_group(void **state)
{
	tree_begin(&tree);
	tree_put(&tree, "/proc/self/cgroup", "0::/a\n");
	tree_put(&tree, "/proc/self/mountinfo",
		 "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
	cgroup_init(&cg, tree.root);
	now_ns = 1000000 * MS;
	own.cpu_ns = 0;
	own.threads = 1;
	return 0;
}

static int remove_group(void **state)
{
	tree_end(&tree);
	return 0;
}

/* As user/limits/cgroup.c does for its process. */
static unsigned read_threads(uint64_t after_ms)
{
	now_ns += after_ms * MS;
	if (now_ns >= cg.refresh_due_ns)
		cgroup_refresh(&cg, now_ns, &own);
	return cgroup_now(&cg);
}

static void stat_2(const char *path, uint64_t usage_ms, unsigned nr_throttled,
		   uint64_t throttled_ms)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "usage_usec %llu\nuser_usec 5\nsystem_usec 6\nnr_periods 70\n"
		 "nr_throttled %u\nthrottled_usec %llu\n",
		 (unsigned long long)usage_ms * 1000, nr_throttled,
		 (unsigned long long)throttled_ms * 1000);
	tree_put(&tree, path, text);
}

static void others_use_counts(void **state)
{
	tree_put(&tree, A "/cpu.max", "400000 100000\n");
	stat_2(A "/cpu.stat", 1000, 0, 0);
	assert_int_equal(read_threads(0), 4);
	stat_2(A "/cpu.stat", 1000 + 50 + 100, 0, 0);
	own.cpu_ns += 50 * MS;
	assert_int_equal(read_threads(50), 2);
	/* Our own four threads leave capacity for four. */
	own.threads = 4;
	for (int i = 1; i < 6; i++) {
		stat_2(A "/cpu.stat", 1150 + (uint64_t)i * 200, 0, 0);
		own.cpu_ns += 200 * MS;
		read_threads(50);
	}
	assert_int_equal(cgroup_now(&cg), 4);
}

static void others_use_counts_in_version_1(void **state)
{
	tree_put(&tree, "/proc/self/cgroup", "2:cpuacct:/a\n1:cpu:/a\n");
	tree_put(&tree, "/proc/self/mountinfo",
		 "31 1 0:1 / /cg rw - cgroup x rw,cpu\n"
		 "32 1 0:2 / /acct rw - cgroup x rw,cpuacct\n");
	tree_put(&tree, A "/cpu.cfs_quota_us", "300000\n");
	tree_put(&tree, A "/cpu.cfs_period_us", "100000\n");
	tree_put(&tree, "/acct/a/cpuacct.usage", "7000000000\n");
	assert_int_equal(read_threads(0), 3);
	tree_put(&tree, "/acct/a/cpuacct.usage", "7050000000\n");
	assert_int_equal(read_threads(50), 2);
}

static void use_further_up_counts_too(void **state)
{
	tree_put(&tree, A "/cpu.max", "200000 100000\n");
	tree_put(&tree, "/cg/cpu.max", "400000 100000\n");
	stat_2(A "/cpu.stat", 0, 0, 0);
	stat_2("/cg/cpu.stat", 0, 0, 0);
	assert_int_equal(read_threads(0), 2);
	/* Another group below the same parent leaves half of a CPU. */
	stat_2("/cg/cpu.stat", 175, 0, 0);
	assert_int_equal(read_threads(50), 1);
}

static void throttling_takes_one_a_refresh(void **state)
{
	tree_put(&tree, A "/cpu.max", "400000 100000\n");
	stat_2(A "/cpu.stat", 0, 9, 900);
	assert_int_equal(read_threads(0), 4);
	stat_2(A "/cpu.stat", 0, 10, 1000);
	/* Not yet due. */
	assert_int_equal(read_threads(49), 4);
	assert_int_equal(read_threads(1), 3);
	stat_2(A "/cpu.stat", 0, 11, 1100);
	assert_int_equal(read_threads(50), 2);
	for (int i = 0; i < 20; i++)
		read_threads(50);
	assert_int_equal(cgroup_now(&cg), 3);
	for (int i = 0; i < 20; i++)
		read_threads(50);
	assert_int_equal(cgroup_now(&cg), 4);
}

static void throttling_counts_in_version_1(void **state)
{
	tree_put(&tree, "/proc/self/cgroup", "1:cpu:/a\n");
	tree_put(&tree, "/proc/self/mountinfo",
		 "31 1 0:1 / /cg rw - cgroup x rw,cpu\n");
	tree_put(&tree, A "/cpu.cfs_quota_us", "300000\n");
	tree_put(&tree, A "/cpu.cfs_period_us", "100000\n");
	tree_put(&tree, A "/cpu.stat",
		 "nr_periods 1\nnr_throttled 0\nthrottled_time 0\n");
	assert_int_equal(read_threads(0), 3);
	tree_put(&tree, A "/cpu.stat",
		 "nr_periods 2\nnr_throttled 1\nthrottled_time 80000000\n");
	assert_int_equal(read_threads(50), 2);
}

static void a_moved_process_obeys_its_new_group(void **state)
{
	tree_put(&tree, A "/cpu.max", "400000 100000\n");
	tree_put(&tree, B "/cpu.max", "200000 100000\n");
	assert_int_equal(read_threads(0), 4);
	tree_put(&tree, "/proc/self/cgroup", "0::/b\n");
	assert_int_equal(read_threads(500), 4);
	assert_int_equal(read_threads(500), 2);
	tree_put(&tree, "/proc/self/cgroup", "0::/\n");
	assert_int_equal(read_threads(1000), CGROUP_NO_LIMIT);
}

static void a_new_group_knows_nothing_of_the_old(void **state)
{
	tree_put(&tree, A "/cpu.max", "400000 100000\n");
	tree_put(&tree, B "/cpu.max", "400000 100000\n");
	stat_2(A "/cpu.stat", 0, 0, 0);
	stat_2(B "/cpu.stat", 900000, 500, 90000);
	read_threads(0);
	stat_2(A "/cpu.stat", 100, 1, 100);
	assert_int_equal(read_threads(50), 1);
	tree_put(&tree, "/proc/self/cgroup", "0::/b\n");
	assert_int_equal(read_threads(1000), 4);
}

static void a_changed_quota_holds_in_a_second(void **state)
{
	tree_put(&tree, A "/cpu.max", "400000 100000\n");
	assert_int_equal(read_threads(0), 4);
	tree_put(&tree, A "/cpu.max", "150000 100000\n");
	assert_int_equal(read_threads(1000), 1);
	tree_put(&tree, A "/cpu.max", "max 100000\n");
	assert_int_equal(read_threads(1000), CGROUP_NO_LIMIT);
}

static void a_removed_group_has_no_limit(void **state)
{
	tree_put(&tree, A "/cpu.max", "200000 100000\n");
	stat_2(A "/cpu.stat", 0, 0, 0);
	assert_int_equal(read_threads(0), 2);
	tree_remove(&tree, A);
	read_threads(50);
	assert_int_equal(read_threads(1000), CGROUP_NO_LIMIT);
	tree_remove(&tree, "/proc");
	assert_int_equal(read_threads(1000), CGROUP_NO_LIMIT);
}

static void without_a_limit_a_second_is_quiet(void **state)
{
	assert_int_equal(read_threads(0), CGROUP_NO_LIMIT);
	assert_true(cg.refresh_due_ns == now_ns + CGROUP_FIND_NS);
	tree_put(&tree, A "/cpu.max", "200000 100000\n");
	assert_int_equal(read_threads(999), CGROUP_NO_LIMIT);
	assert_int_equal(read_threads(1), 2);
	assert_true(cg.refresh_due_ns == now_ns + CGROUP_REFRESH_NS);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_group, remove_group)

KTEST_MAIN(T(others_use_counts), T(others_use_counts_in_version_1),
	   T(use_further_up_counts_too), T(throttling_takes_one_a_refresh),
	   T(throttling_counts_in_version_1),
	   T(a_moved_process_obeys_its_new_group),
	   T(a_new_group_knows_nothing_of_the_old),
	   T(a_changed_quota_holds_in_a_second),
	   T(a_removed_group_has_no_limit),
	   T(without_a_limit_a_second_is_quiet))
