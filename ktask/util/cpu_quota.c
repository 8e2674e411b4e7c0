/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See cpu_quota.h.  A file that cannot be read counts as no quota: the root has none.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cpu_quota.h"
#include "file.h"
#include "group_tree.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
/* A line for each hierarchy, with a path of up to 4,096 bytes in one of them. */
#define GROUPS_TEXT 8192

/* Where one version of control groups has a quota.  "max 100000" and "-1" are none. */
struct quota_file {
	const char *key; /* in /proc/PID/cgroup, before the directory */
	const char *root, *name;
};

static const struct quota_file quota_files[] = {
	{ "\n0::", CGROUP_ROOT, "cpu.max" },
	{ ":cpu:", CGROUP_ROOT "/cpu", "cpu.cfs_quota_us" },
	{ ":cpu,cpuacct:", CGROUP_ROOT "/cpu", "cpu.cfs_quota_us" },
	{ ":cpuacct,cpu:", CGROUP_ROOT "/cpu", "cpu.cfs_quota_us" },
};

#define NR_FILES (sizeof(quota_files) / sizeof(quota_files[0]))

/* Return: 0 for a quota. */
static uint64_t quota_of_directory(const void *arg, const char *directory)
{
	const struct quota_file *file = arg;
	char path[640], text[64];

	snprintf(path, sizeof(path), "%s%s/%s", file->root, directory,
		 file->name);
	file_text(path, text, sizeof(text));
	return text[0] >= '0' && text[0] <= '9' ? 0 : UINT64_MAX;
}

bool cpu_quota_is_set(const char *groups)
{
	char text[GROUPS_TEXT] = "\n";
	int len = file_text(groups, text + 1, sizeof(text) - 1);

	if (len >= (int)sizeof(text) - 2)
		return true;
	for (size_t i = 0; i < NR_FILES; i++)
		if (!group_tree_least(text, quota_files[i].key,
				      quota_of_directory, &quota_files[i]))
			return true;
	return false;
}
