/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How many threads a process may still make is the least of what its control group and
 * those above it leave, in either version of control groups.
 */
#include "ktest.h"
#include "tree.h"

#include "util/file.h"
#include "util/threads_left.h"

static struct tree tree;

static void begin_tree(const char *groups)
{
	tree_begin(&tree);
	file_root = tree.root;
	tree_put(&tree, "/proc/self/cgroup", groups);
}

static void end_tree(void)
{
	file_root = "";
	tree_end(&tree);
}

static void the_least_of_the_directories_counts(void **unused)
{
	begin_tree("0::/a/b\n");
	assert_true(threads_left_in_groups() == UINT64_MAX);
	tree_put(&tree, "/sys/fs/cgroup/a/b/pids.current", "7\n");
	tree_put(&tree, "/sys/fs/cgroup/a/b/pids.max", "max\n");
	assert_true(threads_left_in_groups() == UINT64_MAX);
	tree_put(&tree, "/sys/fs/cgroup/a/b/pids.max", "10\n");
	assert_int_equal(threads_left_in_groups(), 3);
	tree_put(&tree, "/sys/fs/cgroup/a/pids.max", "101\n");
	tree_put(&tree, "/sys/fs/cgroup/a/pids.current", "100\n");
	assert_int_equal(threads_left_in_groups(), 1);
	/* More than is allowed: the limit was lowered. */
	tree_put(&tree, "/sys/fs/cgroup/a/pids.max", "50\n");
	assert_int_equal(threads_left_in_groups(), 0);
	end_tree();
}

/* What a container sees is the root of its own namespace. */
static void a_container_has_the_limit_at_its_root(void **unused)
{
	begin_tree("0::/\n");
	tree_put(&tree, "/sys/fs/cgroup/pids.max", "100\n");
	tree_put(&tree, "/sys/fs/cgroup/pids.current", "4\n");
	assert_int_equal(threads_left_in_groups(), 96);
	end_tree();
}

static void version_1_counts_as_well(void **unused)
{
	begin_tree("9:name=systemd:/x\n8:pids:/c\n7:memory:/d\n0::/\n");
	tree_put(&tree, "/sys/fs/cgroup/pids/c/pids.max", "20\n");
	tree_put(&tree, "/sys/fs/cgroup/pids/c/pids.current", "5\n");
	assert_int_equal(threads_left_in_groups(), 15);
	end_tree();
}

static void without_groups_there_is_no_limit(void **unused)
{
	begin_tree("");
	assert_true(threads_left_in_groups() == UINT64_MAX);
	end_tree();
}

KTEST_MAIN(KTEST(the_least_of_the_directories_counts),
	   KTEST(a_container_has_the_limit_at_its_root),
	   KTEST(version_1_counts_as_well),
	   KTEST(without_groups_there_is_no_limit))
