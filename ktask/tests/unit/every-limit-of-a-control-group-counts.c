/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What a process may have is the least of its control group's limits and those of the
 * groups above it: memory.max and memory.high alike. */
#include <stdio.h>

#include "support/own_groups.h"

#include "util/memory.h"

static void fill_groups(void)
{
	assert_int_equal(mkdir(ROOT "/a", 0755), 0);
	assert_int_equal(mkdir(ROOT "/a/b", 0755), 0);
	write_text(ROOT "/a/memory.current", "1000");
	write_text(ROOT "/a/b/memory.current", "300");
	write_text(GROUPS, "0::/a/b");
}

static void the_least_limit_counts(void **state)
{
	static const char *const names[] = { "memory.max", "memory.high" };

	cover_groups();
	fill_groups();
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(names); i++) {
		char own[64], above[64];

		snprintf(own, sizeof(own), ROOT "/a/b/%s", names[i]);
		snprintf(above, sizeof(above), ROOT "/a/%s", names[i]);
		write_text(own, "max");
		write_text(above, "max");
		assert_true(memory_available_to(GROUPS) > 5000);
		assert_true(memory_left_in_groups(GROUPS) == UINT64_MAX);
		write_text(own, "4300");
		assert_int_equal(memory_available_to(GROUPS), 4000);
		write_text(above, "4000");
		assert_int_equal(memory_available_to(GROUPS), 3000);
		assert_int_equal(memory_left_in_groups(GROUPS), 3000);
		write_text(own, "200");
		assert_int_equal(memory_available_to(GROUPS), 0);
		write_text(own, "max");
		write_text(above, "max");
	}
}

/* A group that works on files is at memory.high; the kernel drops those first. */
static void page_cache_under_memory_high_is_available(void **state)
{
	cover_groups();
	fill_groups();
	write_text(ROOT "/a/b/memory.high", "4300");
	write_text(ROOT "/a/b/memory.current", "4300");
	assert_int_equal(memory_available_to(GROUPS), 0);
	write_text(ROOT "/a/b/memory.stat",
		   "anon 2300\nfile 2000\ninactive_file 2000\nactive_file 0");
	assert_int_equal(memory_available_to(GROUPS), 2000);
	write_text(
		ROOT "/a/b/memory.stat",
		"anon 1300\nfile 3000\ninactive_file 2000\nactive_file 1000");
	assert_int_equal(memory_available_to(GROUPS), 3000);
	/* The numbers are not of one moment: never more than the limit. */
	write_text(ROOT "/a/b/memory.stat", "inactive_file 9000");
	assert_int_equal(memory_available_to(GROUPS), 4300);
}

KTEST_MAIN(KTEST(the_least_limit_counts),
	   KTEST(page_cache_under_memory_high_is_available))
