/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A process has a CPU quota if its control group has one, or a group above that one, in
 * either version of control groups. */
#include <string.h>

#include "support/own_groups.h"

#include "util/cpu_quota.h"

static void begin_groups(void)
{
	cover_groups();
	assert_int_equal(mkdir(ROOT "/a", 0755), 0);
	assert_int_equal(mkdir(ROOT "/a/b", 0755), 0);
	assert_int_equal(mkdir(ROOT "/cpu", 0755), 0);
	assert_int_equal(mkdir(ROOT "/cpu/a", 0755), 0);
	assert_int_equal(mkdir(ROOT "/cpu/a/b", 0755), 0);
}

static void see_quota(const char *file, const char *quota, const char *none)
{
	assert_false(cpu_quota_is_set(GROUPS));
	write_text(file, none);
	assert_false(cpu_quota_is_set(GROUPS));
	write_text(file, quota);
	assert_true(cpu_quota_is_set(GROUPS));
	write_text(file, none);
}

static void the_second_version_is_read_up_the_tree(void **state)
{
	begin_groups();
	write_text(GROUPS, "0::/a/b");
	see_quota(ROOT "/a/b/cpu.max", "50000 100000", "max 100000");
	see_quota(ROOT "/a/cpu.max", "150000 100000", "max 100000");
	/* A container may see its own group as the highest. */
	see_quota(ROOT "/cpu.max", "1000 100000", "max 100000");
}

static void the_first_version_is_read_up_the_tree(void **state)
{
	static const char *const lines[] = {
		"4:memory:/\n3:cpu,cpuacct:/a/b",
		"3:cpuacct,cpu:/a/b\n2:cpuset:/",
		"12:cpu:/a/b\n11:cpuacct:/\n0::/",
	};

	begin_groups();
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(lines); i++) {
		write_text(GROUPS, lines[i]);
		see_quota(ROOT "/cpu/a/b/cpu.cfs_quota_us", "50000", "-1");
		see_quota(ROOT "/cpu/a/cpu.cfs_quota_us", "250000", "-1");
	}
}

static void another_group_does_not_count(void **state)
{
	begin_groups();
	write_text(ROOT "/a/b/cpu.max", "50000 100000");
	write_text(ROOT "/cpu/a/b/cpu.cfs_quota_us", "50000");
	write_text(GROUPS, "3:cpu,cpuacct:/a\n2:cpuset:/a/b\n0::/a");
	assert_false(cpu_quota_is_set(GROUPS));
	/* The process is gone. */
	assert_false(cpu_quota_is_set(ROOT "/nobody"));
}

/* Somebody may have made groups of long names so that the line is not read. */
static void a_text_that_is_too_long_counts_as_a_quota(void **state)
{
	static char text[9000];

	begin_groups();
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "1:name=own:/", strlen("1:name=own:/"));
	write_text(GROUPS, text);
	assert_true(cpu_quota_is_set(GROUPS));
}

KTEST_MAIN(KTEST(the_second_version_is_read_up_the_tree),
	   KTEST(the_first_version_is_read_up_the_tree),
	   KTEST(another_group_does_not_count),
	   KTEST(a_text_that_is_too_long_counts_as_a_quota))
