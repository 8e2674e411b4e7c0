/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The directories of the own groups are found in every kind of mount: version 1, 2
 * and both, namespaces, containers that see a part of the tree.  What cannot be
 * seen is not guessed.
 */
#include "ktest.h"
#include "tree.h"

#include "user/limits/cgroup_find.h"

#define OTHER_MOUNTS                                                \
	"22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n" \
	"23 22 0:21 / /proc rw - proc proc rw\n"                    \
	"24 22 0:22 / /sys/fs/cgroup ro - tmpfs  ro,mode=755\n"     \
	"25 22 0:50 / /odd rw master:1 propagate_from:2 - fuse - cgroup rw\n"

static struct tree tree;
static struct cgroup_dir dirs[CGROUP_KINDS];
static uint64_t mark;

static int make_tree(void **state)
{
	tree_begin(&tree);
	mark = 0;
	memset(dirs, 0, sizeof(dirs));
	return 0;
}

static int remove_tree(void **state)
{
	tree_end(&tree);
	return 0;
}

static bool find_groups(const char *groups, const char *mounts)
{
	static struct cgroup_finder finder;

	if (groups)
		tree_put(&tree, "/proc/self/cgroup", groups);
	if (mounts)
		tree_put(&tree, "/proc/self/mountinfo", mounts);
	return cgroup_find(&finder, tree.root, &mark, dirs);
}

static const char *top_of(enum cgroup_kind kind)
{
	static char top[CGROUP_PATH];

	snprintf(top, sizeof(top), "%.*s", (int)dirs[kind].top_len,
		 dirs[kind].path);
	return top + strlen(tree.root);
}

#define assert_dir(kind, of_version, top, below)                          \
	do {                                                              \
		assert_int_equal(dirs[kind].version, of_version);         \
		assert_string_equal(top_of(kind), top);                   \
		assert_string_equal(dirs[kind].path + dirs[kind].top_len, \
				    below);                               \
	} while (0)

#define assert_unseen(kind) assert_int_equal(dirs[kind].version, 0)

static void version_2(void **state)
{
	find_groups("0::/user.slice/app.service\n", OTHER_MOUNTS
		    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - "
		    "cgroup2 cgroup2 rw,nsdelegate\n");
	for (int kind = 0; kind < CGROUP_KINDS; kind++)
		assert_dir(kind, 2, "/sys/fs/cgroup",
			   "/user.slice/app.service");
}

static void version_1(void **state)
{
	find_groups(
		"9:name=systemd:/\n4:memory:/m\n3:pids:/p\n"
		"2:cpu,cpuacct:/c/d\n1:cpuset:/\n",
		OTHER_MOUNTS
		"33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
		"rw,cpu,cpuacct\n"
		"34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
		"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		"36 31 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n");
	assert_dir(CGROUP_CPU, 1, "/sys/fs/cgroup/cpu,cpuacct", "/c/d");
	assert_dir(CGROUP_USAGE, 1, "/sys/fs/cgroup/cpu,cpuacct", "/c/d");
	assert_dir(CGROUP_PIDS, 1, "/sys/fs/cgroup/pids", "/p");
	assert_dir(CGROUP_MEMORY, 1, "/sys/fs/cgroup/memory", "/m");
}

#define CPU_MOUNT "33 31 0:30 / /cg/cpu rw - cgroup cgroup rw,cpu\n"
#define ACCT_MOUNT "34 31 0:31 / /cg/acct rw - cgroup cgroup rw,cpuacct\n"

static void use_is_the_same_groups_or_unknown(void **state)
{
	find_groups("2:cpuacct:/a\n1:cpu:/a\n", CPU_MOUNT ACCT_MOUNT);
	assert_dir(CGROUP_CPU, 1, "/cg/cpu", "/a");
	assert_dir(CGROUP_USAGE, 1, "/cg/acct", "/a");
	find_groups("2:cpuacct:/b\n1:cpu:/a\n", NULL);
	assert_dir(CGROUP_CPU, 1, "/cg/cpu", "/a");
	assert_unseen(CGROUP_USAGE);
}

static void both_versions(void **state)
{
	find_groups(
		"5:pids:/v1\n0::/v2\n", OTHER_MOUNTS
		"31 24 0:26 / /cg/unified rw - cgroup2 cgroup2 rw\n"
		"36 31 0:33 / /cg/pids rw - cgroup cgroup rw,pids\n"
		"37 31 0:34 / /cg/systemd rw - cgroup cgroup rw,name=systemd\n");
	assert_dir(CGROUP_PIDS, 1, "/cg/pids", "/v1");
	assert_dir(CGROUP_CPU, 2, "/cg/unified", "/v2");
	assert_dir(CGROUP_USAGE, 2, "/cg/unified", "/v2");
	assert_dir(CGROUP_MEMORY, 2, "/cg/unified", "/v2");
}

static void cpu_in_version_1_takes_no_use_of_version_2(void **state)
{
	find_groups("0::/x\n1:cpu:/x\n", CPU_MOUNT
		    "31 24 0:26 / /cg/unified rw - cgroup2 cgroup2 rw\n");
	assert_dir(CGROUP_CPU, 1, "/cg/cpu", "/x");
	assert_unseen(CGROUP_USAGE);
}

#define V2_AT(root, point) \
	"30 24 0:26 " root " " point " rw - cgroup2 cgroup2 rw\n"

static void container_without_namespace_sees_its_part(void **state)
{
	find_groups("0::/docker/1234\n",
		    V2_AT("/docker/1234", "/sys/fs/cgroup"));
	assert_dir(CGROUP_CPU, 2, "/sys/fs/cgroup", "");
	find_groups("0::/docker/1234/child\n", NULL);
	assert_dir(CGROUP_CPU, 2, "/sys/fs/cgroup", "/child");
}

static void namespace_root_is_the_mount(void **state)
{
	find_groups("0::/\n", V2_AT("/", "/sys/fs/cgroup"));
	assert_dir(CGROUP_CPU, 2, "/sys/fs/cgroup", "");
	find_groups("0::/inner\n", NULL);
	assert_dir(CGROUP_CPU, 2, "/sys/fs/cgroup", "/inner");
}

static void mount_of_a_hidden_parent_shows_the_parent(void **state)
{
	find_groups("0::/\n", V2_AT("/..", "/cg"));
	assert_dir(CGROUP_CPU, 2, "/cg", "");
	find_groups("0::/inner\n", V2_AT("/../..", "/cg"));
	assert_dir(CGROUP_CPU, 2, "/cg", "");
}

static void group_outside_of_the_namespace(void **state)
{
	find_groups("0::/../sibling\n", V2_AT("/", "/cg"));
	assert_unseen(CGROUP_CPU);
	find_groups("0::/..\n", V2_AT("/", "/cg"));
	assert_unseen(CGROUP_CPU);
	find_groups("0::/../sibling/x\n", V2_AT("/..", "/cg"));
	assert_dir(CGROUP_CPU, 2, "/cg", "/sibling/x");
	find_groups("0::/../../far\n", V2_AT("/..", "/cg"));
	assert_unseen(CGROUP_CPU);
	find_groups("0::/../far\n", V2_AT("/../sibling", "/cg"));
	assert_unseen(CGROUP_CPU);
	/* A name that only begins like a parent. */
	find_groups("0::/..data\n", V2_AT("/", "/cg"));
	assert_dir(CGROUP_CPU, 2, "/cg", "/..data");
}

static void mount_of_another_part_is_passed_over(void **state)
{
	find_groups("0::/a/b\n",
		    V2_AT("/c", "/other") V2_AT("/a/bb", "/third"));
	assert_unseen(CGROUP_CPU);
	mark = 0;
	find_groups(NULL, V2_AT("/c", "/other") V2_AT("/a", "/cg"));
	assert_dir(CGROUP_CPU, 2, "/cg", "/b");
}

static void the_mount_that_shows_more_wins(void **state)
{
	find_groups("0::/a/b\n", V2_AT("/a", "/part") V2_AT("/", "/whole")
					 V2_AT("/a/b", "/least"));
	assert_dir(CGROUP_CPU, 2, "/whole", "/a/b");
	mark = 0;
	find_groups(NULL, V2_AT("/", "/lower") V2_AT("/", "/upper"));
	assert_dir(CGROUP_CPU, 2, "/upper", "/a/b");
}

/* The id of the mount that the tree is in. */
static unsigned long long tree_mount(void)
{
	struct statx st;

	if (statx(AT_FDCWD, tree.root, 0, STATX_MNT_ID, &st) ||
	    !(st.stx_mask & STATX_MNT_ID))
		ktest_skip("the kernel does not tell mounts by their id");
	return st.stx_mnt_id;
}

/* @of_lines: with %llu where the id of a mount is; each gets that of the tree, +@add */
static const char *with_ids(const char *of_lines, unsigned add)
{
	static char text[2000];
	unsigned long long id = tree_mount() + add;

	snprintf(text, sizeof(text), of_lines, id, id, id, id);
	return text;
}

#define SEEN_AT(root, point) \
	"%llu 24 0:26 " root " " point " rw - cgroup2 cgroup2 rw\n"
#define SEEN_V1(controller)                       \
	"%llu 24 0:26 / /cg/" controller " rw - " \
	"cgroup cgroup rw," controller "\n"

/* On machines with thousands of mounts, most of which come later, the rest of the file
 * takes the kernel long. */
static void nothing_is_read_behind_a_mount_of_all_groups(void **state)
{
	tree_put(&tree, "/cg/a/b/cgroup.procs", "");
	tree_put(&tree, "/cg/b/cgroup.procs", "");
	find_groups("0::/a/b\n",
		    with_ids(SEEN_AT("/", "/cg") V2_AT("/", "/upper"), 0));
	assert_dir(CGROUP_CPU, 2, "/cg", "/a/b");
	assert_dir(CGROUP_MEMORY, 2, "/cg", "/a/b");
	/* It is hidden by a later one. */
	mark = 0;
	find_groups(NULL,
		    with_ids(SEEN_AT("/", "/cg") V2_AT("/", "/upper"), 1));
	assert_dir(CGROUP_CPU, 2, "/upper", "/a/b");
	mark = 0;
	find_groups(NULL,
		    with_ids(SEEN_AT("/a", "/cg") V2_AT("/", "/upper"), 0));
	assert_dir(CGROUP_CPU, 2, "/upper", "/a/b");
	/* It shows all but what is outside of the namespace. */
	find_groups("0::/../b\n",
		    with_ids(SEEN_AT("/", "/cg") V2_AT("/..", "/upper"), 0));
	assert_dir(CGROUP_CPU, 2, "/upper", "/b");
}

static void reading_goes_on_until_each_kind_is_found(void **state)
{
	tree_put(&tree, "/cg/cpu/c/tasks", "");
	tree_put(&tree, "/cg/pids/p/tasks", "");
	tree_put(&tree, "/cg/memory/m/tasks", "");
	find_groups("3:pids:/p\n2:cpu:/c\n1:memory:/m\n",
		    with_ids(SEEN_V1("pids") V2_AT("/", "/v2") SEEN_V1("cpu")
				     SEEN_V1("memory"),
			     0));
	assert_dir(CGROUP_PIDS, 1, "/cg/pids", "/p");
	assert_dir(CGROUP_CPU, 1, "/cg/cpu", "/c");
	assert_dir(CGROUP_MEMORY, 1, "/cg/memory", "/m");
	assert_unseen(CGROUP_USAGE);
}

static void escaped_names_are_unescaped(void **state)
{
	find_groups("0::/with space/back\\slash\n",
		    V2_AT("/with\\040space", "/the\\040mount\\134x\\011"));
	assert_dir(CGROUP_CPU, 2, "/the mount\\x\t", "/back\\slash");
}

static void mount_at_the_root_of_all(void **state)
{
	find_groups("0::/a\n", V2_AT("/", "/"));
	assert_dir(CGROUP_CPU, 2, "", "/a");
}

static void up_ends_at_the_mount(void **state)
{
	unsigned len;

	find_groups("0::/a/bb/c\n", V2_AT("/a", "/cg"));
	len = (unsigned)strlen(dirs[CGROUP_CPU].path);
	assert_true(cgroup_up(&dirs[CGROUP_CPU], &len));
	assert_int_equal(len, dirs[CGROUP_CPU].top_len + 3);
	assert_true(cgroup_up(&dirs[CGROUP_CPU], &len));
	assert_int_equal(len, dirs[CGROUP_CPU].top_len);
	assert_false(cgroup_up(&dirs[CGROUP_CPU], &len));
}

static void only_a_change_is_read_again(void **state)
{
	assert_true(find_groups("0::/a\n", V2_AT("/", "/cg")));
	assert_false(find_groups("0::/a\n", V2_AT("/", "/elsewhere")));
	assert_dir(CGROUP_CPU, 2, "/cg", "/a");
	assert_true(find_groups("0::/b\n", NULL));
	assert_dir(CGROUP_CPU, 2, "/elsewhere", "/b");
}

static void missing_files_are_no_groups(void **state)
{
	find_groups(NULL, NULL);
	assert_unseen(CGROUP_CPU);
	find_groups("0::/a\n", NULL);
	assert_unseen(CGROUP_CPU);
	tree_remove(&tree, "/proc");
	mark = 0;
	find_groups(NULL, V2_AT("/", "/cg"));
	assert_unseen(CGROUP_CPU);
}

static void halves_of_lines_are_nothing(void **state)
{
	find_groups("0::/app/of/a/long/na", V2_AT("/", "/cg"));
	assert_unseen(CGROUP_CPU);
	find_groups("0::/app\n", "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw");
	assert_unseen(CGROUP_CPU);
}

static void too_long_is_not_there(void **state)
{
	static char groups[3000], mounts[9000];

	memset(groups, 'x', sizeof(groups) - 1);
	memcpy(groups, "0::/", 4);
	groups[sizeof(groups) - 2] = '\n';
	memset(mounts, 'y', 6000);
	snprintf(mounts + 6000, 3000, "\n" V2_AT("/", "/cg"));
	find_groups(groups, mounts);
	assert_unseen(CGROUP_CPU);
	/* A line that is too long hides no other. */
	find_groups("0::/a\n", NULL);
	assert_dir(CGROUP_CPU, 2, "/cg", "/a");
}

static void garbage_is_survived(void **state)
{
	static const char words[] = "0:/ \n-:,.x\\04cgroup2cpu";
	uint64_t seed = ktest_seed();

	for (int round = 0; round < 2000; round++) {
		char groups[300], mounts[600];
		size_t i;

		for (i = 0; i < sizeof(groups); i++)
			groups[i] = words[ktest_random_below(
				&seed, sizeof(words) - 1)];
		for (i = 0; i < sizeof(mounts); i++)
			mounts[i] = words[ktest_random_below(
				&seed, sizeof(words) - 1)];
		memcpy(mounts + ktest_random_below(&seed, 500), " - cgroup2 ",
		       11);
		memcpy(groups + ktest_random_below(&seed, 280), "\n0::/", 5);
		groups[sizeof(groups) - 1] = '\0';
		mounts[sizeof(mounts) - 1] = '\0';
		find_groups(groups, mounts);
		for (int kind = 0; kind < CGROUP_KINDS; kind++)
			if (dirs[kind].version)
				assert_true(strlen(dirs[kind].path) >=
					    dirs[kind].top_len);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

KTEST_MAIN(T(version_2), T(version_1), T(use_is_the_same_groups_or_unknown),
	   T(both_versions), T(cpu_in_version_1_takes_no_use_of_version_2),
	   T(container_without_namespace_sees_its_part),
	   T(namespace_root_is_the_mount),
	   T(mount_of_a_hidden_parent_shows_the_parent),
	   T(group_outside_of_the_namespace),
	   T(mount_of_another_part_is_passed_over),
	   T(the_mount_that_shows_more_wins),
	   T(nothing_is_read_behind_a_mount_of_all_groups),
	   T(reading_goes_on_until_each_kind_is_found),
	   T(escaped_names_are_unescaped), T(mount_at_the_root_of_all),
	   T(up_ends_at_the_mount), T(only_a_change_is_read_again),
	   T(missing_files_are_no_groups), T(halves_of_lines_are_nothing),
	   T(too_long_is_not_there), T(garbage_is_survived))
