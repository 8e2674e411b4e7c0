/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See memory.h.  A file that cannot be read counts as no limit.
 */
#include <stdio.h>
#include <string.h>

#include "file.h"
#include "group_tree.h"
#include "memory.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

/*
 * A limit of one version of control groups.  Above memory.high the kernel makes the
 * processes of the group wait.  It drops page cache first, so a group that works on
 * files is at memory.high all the time, and still has memory to give.
 */
struct group_limit {
	const char *key; /* in /proc/self/cgroup, before the directory */
	const char *root, *most, *used;
	bool credits_cache;
};

static const struct group_limit group_limits[] = {
	{ "\n0::", CGROUP_ROOT, "memory.max", "memory.current", false },
	{ "\n0::", CGROUP_ROOT, "memory.high", "memory.current", true },
	{ ":memory:", CGROUP_ROOT "/memory", "memory.limit_in_bytes",
	  "memory.usage_in_bytes", false },
};

#define NR_LIMITS (sizeof(group_limits) / sizeof(group_limits[0]))

uint64_t memory_available_on_machine(void)
{
	uint64_t kib;

	return file_value("/proc/meminfo", "MemAvailable", &kib) ? kib << 10
								 : UINT64_MAX;
}

/* "max", which is no number, reads as no limit. */
static bool read_number(const struct group_limit *limit, const char *directory,
			const char *name, uint64_t *value)
{
	char path[640];

	snprintf(path, sizeof(path), "%s%s/%s", limit->root, directory, name);
	return file_number(path, value);
}

/* Pages of files, which go when something else wants the memory. */
static uint64_t cached_bytes(const struct group_limit *limit,
			     const char *directory)
{
	uint64_t active = 0, inactive = 0;
	char path[640], text[4096];

	snprintf(path, sizeof(path), "%s%s/memory.stat", limit->root,
		 directory);
	file_text(path, text, sizeof(text));
	text_field(text, "active_file", &active);
	text_field(text, "inactive_file", &inactive);
	return active + inactive;
}

static uint64_t directory_bytes(const void *arg, const char *directory)
{
	const struct group_limit *limit = arg;
	uint64_t most, used;

	if (!read_number(limit, directory, limit->most, &most))
		return UINT64_MAX;
	if (!read_number(limit, directory, limit->used, &used))
		used = 0;
	if (limit->credits_cache) {
		uint64_t cached = cached_bytes(limit, directory);

		used -= cached < used ? cached : used;
	}
	return most > used ? most - used : 0;
}

uint64_t memory_left_in_groups(const char *groups)
{
	char text[2048] = "\n";
	uint64_t least = UINT64_MAX;

	file_text(groups, text + 1, sizeof(text) - 1);
	for (size_t i = 0; i < NR_LIMITS; i++) {
		uint64_t available =
			group_tree_least(text, group_limits[i].key,
					 directory_bytes, &group_limits[i]);

		least = available < least ? available : least;
	}
	return least;
}

uint64_t memory_available_to(const char *groups)
{
	uint64_t machine = memory_available_on_machine();
	uint64_t left = memory_left_in_groups(groups);

	return left < machine ? left : machine;
}

uint64_t memory_available(void)
{
	return memory_available_to("/proc/self/cgroup");
}
