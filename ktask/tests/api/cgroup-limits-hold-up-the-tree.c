/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The least of the limits from the own group up to the mount counts; files that
 * are missing or garbage are no limit; nothing is left open.
 */
#include "ktest.h"
#include "tree.h"

#include "user/limits/cgroup.h"

#define GROUP_2 "/sys/fs/cgroup/a/b/c"
#define CPU_1 "/sys/fs/cgroup/cpu"

static struct tree tree;
static struct cgroup cg;
static const struct cgroup_own alone = { 0, 1 };

static int make_tree(void **state)
{
	tree_begin(&tree);
	return 0;
}

static int remove_tree(void **state)
{
	tree_end(&tree);
	return 0;
}

static void version_2(void)
{
	tree_put(&tree, "/proc/self/cgroup", "0::/a/b/c\n");
	tree_put(&tree, "/proc/self/mountinfo",
		 "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
}

static void version_1(void)
{
	tree_put(&tree, "/proc/self/cgroup",
		 "3:memory:/m\n2:pids:/p/q\n1:cpu,cpuacct:/a/b\n");
	tree_put(&tree, "/proc/self/mountinfo",
		 "31 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup x rw,cpu,cpuacct\n"
		 "32 1 0:2 / /sys/fs/cgroup/pids rw - cgroup x rw,pids\n"
		 "33 1 0:3 / /sys/fs/cgroup/memory rw - cgroup x rw,memory\n");
}

static unsigned read_most(void)
{
	cgroup_init(&cg, tree.root);
	cgroup_refresh(&cg, 1, &alone);
	return cgroup_most(&cg);
}

static void no_limit_is_none(void **state)
{
	assert_int_equal(read_most(), CGROUP_NO_LIMIT);
	version_2();
	assert_int_equal(read_most(), CGROUP_NO_LIMIT);
	tree_put(&tree, GROUP_2 "/cpu.max", "max 100000\n");
	tree_put(&tree, GROUP_2 "/pids.max", "max\n");
	tree_put(&tree, GROUP_2 "/pids.current", "3\n");
	tree_put(&tree, GROUP_2 "/memory.max", "max\n");
	tree_put(&tree, GROUP_2 "/memory.current", "30000\n");
	assert_int_equal(read_most(), CGROUP_NO_LIMIT);
	assert_true(cg.pids_left == UINT64_MAX);
	assert_true(cgroup_memory_left(&cg) == UINT64_MAX);
	version_1();
	tree_put(&tree, CPU_1 "/a/b/cpu.cfs_quota_us", "-1\n");
	tree_put(&tree, CPU_1 "/a/b/cpu.cfs_period_us", "100000\n");
	tree_put(&tree, "/sys/fs/cgroup/memory/m/memory.limit_in_bytes",
		 "9223372036854771712\n");
	tree_put(&tree, "/sys/fs/cgroup/memory/m/memory.usage_in_bytes",
		 "4096\n");
	assert_int_equal(read_most(), CGROUP_NO_LIMIT);
	assert_true(cgroup_memory_left(&cg) == UINT64_MAX);
}

static void least_quota_of_version_2(void **state)
{
	char name[64];

	version_2();
	tree_put(&tree, GROUP_2 "/cpu.max", "800000 100000\n");
	assert_int_equal(read_most(), 8);
	tree_put(&tree, "/sys/fs/cgroup/a/cpu.max", "60000 20000\n");
	assert_int_equal(read_most(), 3);
	cgroup_least(&cg, name, sizeof(name));
	assert_string_equal(name, "/a");
	tree_put(&tree, "/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
	assert_int_equal(read_most(), 1);
	cgroup_least(&cg, name, sizeof(name));
	assert_string_equal(name, "/a/b");
	/* The mount's own group, as a container sees its limit. */
	tree_put(&tree, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	tree_put(&tree, "/sys/fs/cgroup/cpu.max", "200000 100000\n");
	assert_int_equal(read_most(), 2);
	cgroup_least(&cg, name, sizeof(name));
	assert_string_equal(name, "/");
}

static void least_quota_of_version_1(void **state)
{
	version_1();
	tree_put(&tree, CPU_1 "/a/b/cpu.cfs_quota_us", "400000\n");
	tree_put(&tree, CPU_1 "/a/b/cpu.cfs_period_us", "100000\n");
	assert_int_equal(read_most(), 4);
	tree_put(&tree, CPU_1 "/a/cpu.cfs_quota_us", "5000\n");
	tree_put(&tree, CPU_1 "/a/cpu.cfs_period_us", "2500\n");
	assert_int_equal(read_most(), 2);
	tree_put(&tree, CPU_1 "/cpu.cfs_quota_us", "25000\n");
	tree_put(&tree, CPU_1 "/cpu.cfs_period_us", "50000\n");
	assert_int_equal(read_most(), 1);
}

static void garbage_is_no_limit(void **state)
{
	static const char *const garbage[] = {
		"",
		"\n",
		"100000",
		"100000\n",
		"-5 100000\n",
		"50000 0\n",
		"50000\n100000\n",
		"0x10 100000\n",
		"50000 ",
		"50000 10000",
		"50000 100000 1\n",
		" \n",
		"99999999999999999999999 100000\n",
	};

	version_2();
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(garbage); i++) {
		tree_put(&tree, GROUP_2 "/cpu.max", garbage[i]);
		tree_put(&tree, GROUP_2 "/pids.max", garbage[i]);
		tree_put(&tree, GROUP_2 "/cpu.stat", garbage[i]);
		assert_int_equal(read_most(), CGROUP_NO_LIMIT);
		cgroup_refresh(&cg, 1 + CGROUP_REFRESH_NS, &alone);
	}
	tree_put_bytes(&tree, GROUP_2 "/cpu.max", "5\0 100000\n", 11);
	assert_int_equal(read_most(), CGROUP_NO_LIMIT);
	tree_remove(&tree, GROUP_2 "/cpu.max");
	tree_put(&tree, GROUP_2 "/cpu.max/a", "a directory\n");
	assert_int_equal(read_most(), CGROUP_NO_LIMIT);
}

static void pids_that_may_be_made(void **state)
{
	version_2();
	tree_put(&tree, GROUP_2 "/pids.max", "100\n");
	tree_put(&tree, GROUP_2 "/pids.current", "93\n");
	read_most();
	assert_int_equal(cg.pids_left, 7);
	tree_put(&tree, "/sys/fs/cgroup/a/pids.max", "1000\n");
	tree_put(&tree, "/sys/fs/cgroup/a/pids.current", "998\n");
	read_most();
	assert_int_equal(cg.pids_left, 2);
	/* More than the limit: it was lowered later. */
	tree_put(&tree, "/sys/fs/cgroup/a/pids.current", "1200\n");
	read_most();
	assert_int_equal(cg.pids_left, 0);
	version_1();
	tree_put(&tree, "/sys/fs/cgroup/pids/p/pids.max", "50\n");
	tree_put(&tree, "/sys/fs/cgroup/pids/p/pids.current", "40\n");
	read_most();
	assert_int_equal(cg.pids_left, 10);
}

static void memory_that_is_left(void **state)
{
	version_2();
	tree_put(&tree, "/sys/fs/cgroup/a/memory.max", "1000000\n");
	tree_put(&tree, "/sys/fs/cgroup/a/memory.current", "400000\n");
	assert_int_equal(read_most(), CGROUP_NO_LIMIT);
	assert_int_equal(cgroup_memory_left(&cg), 600000);
	assert_int_equal(cgroup_memory_threads(&cg), 0);
	/* Files give theirs back, but there is no more than the limit. */
	tree_put(&tree, "/sys/fs/cgroup/a/memory.stat",
		 "anon 9\ninactive_file 100000\nactive_file 20000\n");
	assert_int_equal(cgroup_memory_left(&cg), 720000);
	tree_put(&tree, "/sys/fs/cgroup/a/memory.stat",
		 "inactive_file 100000\nactive_file 20000000\n");
	assert_int_equal(cgroup_memory_left(&cg), 1000000);
	tree_put(&tree, "/sys/fs/cgroup/a/memory.max", "5000000000\n");
	assert_int_equal(cgroup_memory_left(&cg), 4999600000);
	assert_int_equal(read_most(), CGROUP_NO_LIMIT);
	assert_int_equal(cgroup_memory_threads(&cg), 4999600000 >> 20);
	version_1();
	tree_put(&tree, "/sys/fs/cgroup/memory/m/memory.limit_in_bytes",
		 "5000\n");
	tree_put(&tree, "/sys/fs/cgroup/memory/m/memory.usage_in_bytes",
		 "6000\n");
	assert_int_equal(read_most(), CGROUP_NO_LIMIT);
	assert_int_equal(cgroup_memory_left(&cg), 0);
	tree_put(&tree, "/sys/fs/cgroup/memory/m/memory.stat",
		 "active_file 7\ntotal_inactive_file 100\n"
		 "total_active_file 30\n");
	assert_int_equal(cgroup_memory_left(&cg), 130);
}

/* The directory that the name leads to is not there: what is above it counts. */
static void hidden_directories_are_passed(void **state)
{
	version_2();
	tree_put(&tree, "/sys/fs/cgroup/cpu.max", "300000 100000\n");
	assert_int_equal(read_most(), 3);
	tree_put(&tree, "/proc/self/cgroup", "0::/a/b/c (deleted)\n");
	tree_put(&tree, "/sys/fs/cgroup/a/cpu.max", "200000 100000\n");
	assert_int_equal(read_most(), 2);
}

static void many_quotas_are_read(void **state)
{
	char path[512] = "/sys/fs/cgroup", groups[300] = "0::";
	int i;

	version_2();
	for (i = 0; i < 2 * CGROUP_LEVELS; i++) {
		strcat(groups, "/g");
		strcat(path, "/g");
		strcat(path, "/cpu.max");
		tree_put(&tree, path, "400000 100000\n");
		path[strlen(path) - strlen("/cpu.max")] = '\0';
	}
	strcat(groups, "\n");
	tree_put(&tree, "/proc/self/cgroup", groups);
	assert_int_equal(read_most(), 4);
	assert_int_equal(cg.nr_levels, CGROUP_LEVELS);
}

static void nothing_stays_open(void **state)
{
	int fds = tree_fds();

	version_1();
	tree_put(&tree, CPU_1 "/a/b/cpu.cfs_quota_us", "400000\n");
	tree_put(&tree, CPU_1 "/a/b/cpu.cfs_period_us", "100000\n");
	tree_put(&tree, CPU_1 "/a/b/cpu.stat", "nr_throttled 1\n");
	read_most();
	cgroup_refresh(&cg, 1 + CGROUP_REFRESH_NS, &alone);
	cgroup_memory_left(&cg);
	assert_int_equal(tree_fds(), fds);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

KTEST_MAIN(T(no_limit_is_none), T(least_quota_of_version_2),
	   T(least_quota_of_version_1), T(garbage_is_no_limit),
	   T(pids_that_may_be_made), T(memory_that_is_left),
	   T(hidden_directories_are_passed), T(many_quotas_are_read),
	   T(nothing_stays_open))
