/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See threads_left.h.  A file that cannot be read counts as no limit. */
#include <stdbool.h>
#include <string.h>

#include "util/file.h"
#include "util/group_tree.h"
#include "util/threads_left.h"

static const struct group_tree {
	const char *key; /* in /proc/self/cgroup, before the directory */
	const char *root;
} group_trees[] = {
	{ "\n0::", "/sys/fs/cgroup" },
	{ ":pids:", "/sys/fs/cgroup/pids" },
};

#define NR_TREES (sizeof(group_trees) / sizeof(group_trees[0]))

/* "max", which is no number, reads as no limit. */
static bool read_number(const char *root, const char *directory,
			const char *name, uint64_t *value)
{
	char text[32];

	if (system_text(text, sizeof(text), "%s%s/%s", root, directory, name) <=
	    0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return text_number(text, value);
}

static uint64_t left_in_directory(const void *arg, const char *directory)
{
	const struct group_tree *tree = arg;
	uint64_t most, used;

	if (!read_number(tree->root, directory, "pids.max", &most) ||
	    !read_number(tree->root, directory, "pids.current", &used))
		return UINT64_MAX;
	return most > used ? most - used : 0;
}

uint64_t threads_left_in_groups(void)
{
	char groups[2048] = "\n";
	uint64_t least = UINT64_MAX;

	system_text(groups + 1, sizeof(groups) - 1, "/proc/self/cgroup");
	for (size_t i = 0; i < NR_TREES; i++) {
		uint64_t left =
			group_tree_least(groups, group_trees[i].key,
					 left_in_directory, &group_trees[i]);

		least = left < least ? left : least;
	}
	return least;
}
