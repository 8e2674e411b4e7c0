/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Pages of files are counted as free memory of a control group only if less is left than
 * the helpers of this machine may need: the kernel may take milliseconds to add up
 * memory.stat.  A large machine is one of many CPUs, not one of little memory.
 */
#include "ktest.h"
#include "tree.h"

#include <sys/inotify.h>

#include "user/limits/cgroup.h"
#include "user/pool/user_pool.h"

/* All is due at the first call. */
#define NOW_NS 1000000000000ull
#define CACHED (100ull << 20)
#define LIMIT (4ull << 30)

static struct tree tree;

static void put_bytes(const char *path, uint64_t bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)bytes);
	tree_put(&tree, path, text);
}

static void plant_group(uint64_t left)
{
	char text[128];

	tree_put(&tree, "/proc/self/cgroup", "0::/box\n");
	tree_put(&tree, "/proc/self/mountinfo",
		 "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
	put_bytes("/cg/box/memory.max", LIMIT);
	put_bytes("/cg/box/memory.current", LIMIT - left);
	snprintf(text, sizeof(text), "active_file %llu\ninactive_file 0\n",
		 CACHED);
	tree_put(&tree, "/cg/box/memory.stat", text);
}

/* Return: how often the file was opened while the limits were read. */
static unsigned reads_of_stat(void)
{
	struct inotify_event event;
	char path[128];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	unsigned nr = 0;

	snprintf(path, sizeof(path), "%s/cg/box/memory.stat", tree.root);
	ktest_check(inotify_add_watch(fd, path, IN_OPEN) >= 0);
	cgroup_start_threads(NOW_NS);
	/* Of the same kind they come as one. */
	while (read(fd, &event, sizeof(event)) > 0)
		nr++;
	close(fd);
	return nr;
}

static int leave_enough(void *arg)
{
	pool_machine();
	plant_group(900ull << 20);
	ktest_check(!reads_of_stat());
	ktest_check(cgroup_start_threads(0) >= 64);
	return 0;
}

static int leave_little(void *arg)
{
	pool_machine();
	plant_group(2 * CGROUP_HELPER_BYTES);
	ktest_check(reads_of_stat());
	/* And what the kernel would drop. */
	ktest_check(cgroup_start_threads(0) >= CACHED / CGROUP_HELPER_BYTES);
	return 0;
}

static int make_tree(void **state)
{
	tree_begin(&tree);
	tree_put_cpus(&tree);
	file_root = tree.root;
	return 0;
}

static int remove_tree(void **state)
{
	file_root = "";
	tree_end(&tree);
	return 0;
}

static void not_with_enough_left(void **state)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) > 512)
		ktest_skip("more CPUs than that is enough for");
	assert_int_equal(ktest_in_child(leave_enough, NULL), 0);
}

static void with_little_left(void **state)
{
	assert_int_equal(ktest_in_child(leave_little, NULL), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

KTEST_MAIN(T(not_with_enough_left), T(with_little_left))
