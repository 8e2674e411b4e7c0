/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where the files of this process's control groups are.
 *
 * Owns /proc/self/cgroup and /proc/self/mountinfo: versions 1 and 2, both at once,
 * namespaces, and containers that see only a part of the tree.  Does not read limits.
 * Behaves badly if only a parent of the group is mounted and a namespace hides the name
 * in between: then only the parent's limits can be seen.
 */
#ifndef KTASK_USER_CGROUP_FIND_H
#define KTASK_USER_CGROUP_FIND_H

#include "util/file.h"

enum cgroup_kind {
	CGROUP_CPU, /* quota and throttling */
	CGROUP_USAGE, /* CPU time: with CGROUP_CPU, but for version 1 */
	CGROUP_PIDS,
	CGROUP_MEMORY,
	CGROUP_KINDS
};

#define CGROUP_PATH 1024
#define CGROUP_TEXT 8192

/* The directory of the group, for one kind of limit. */
struct cgroup_dir {
	unsigned version; /* 1, 2; 0: cannot be seen */
	unsigned top_len; /* path[0, top_len) is the mount: no further up */
	char path[CGROUP_PATH];
};

/* Not small; callers may have a small stack. */
struct cgroup_finder {
	char text[CGROUP_TEXT]; /* of /proc/self/cgroup */
	struct file_lines lines; /* of /proc/self/mountinfo */
	const char *groups[CGROUP_KINDS]; /* as text says, or NULL */
	unsigned version[CGROUP_KINDS];
};

/*
 * cgroup_find - find the directories
 * @root: before every path
 * @mark: stands for the text of /proc/self/cgroup; 0 before the first call.
 *	While the text stays the same, only that file is read.
 *
 * Return: true if @dirs changed.
 */
bool cgroup_find(struct cgroup_finder *finder, const char *root, uint64_t *mark,
		 struct cgroup_dir dirs[CGROUP_KINDS]);

/*
 * cgroup_up - one group up
 * @len: path[0, len) is the present group
 *
 * Return: false if it is the highest that can be seen.
 */
bool cgroup_up(const struct cgroup_dir *dir, unsigned *len);

#endif /* KTASK_USER_CGROUP_FIND_H */
