/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Limits of the control group of a process and of the groups above it.  Allocates nothing.
 */
#ifndef KTASK_UTIL_GROUP_TREE_H
#define KTASK_UTIL_GROUP_TREE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What one directory leaves; UINT64_MAX: no limit */
typedef uint64_t (*group_left_func)(const void *limit, const char *directory);

/*
 * group_tree_least - the least that a directory and those above it leave, down to the root
 * @groups: the text of /proc/PID/cgroup, with a newline before it
 * @key: what is before the directory in its line
 *
 * If the name of a directory is too long only those above it count.
 *
 * Return: UINT64_MAX if there is no such line, or no limit.
 */
static inline uint64_t group_tree_least(const char *groups, const char *key,
					group_left_func left, const void *limit)
{
	const char *at = strstr(groups, key);
	uint64_t least = UINT64_MAX;
	char directory[512];

	if (!at)
		return least;
	at += strlen(key);
	snprintf(directory, sizeof(directory), "%.*s", (int)strcspn(at, "\n"),
		 at);
	for (char *end = directory + strlen(directory); end;
	     end = strrchr(directory, '/')) {
		uint64_t here;

		*end = '\0';
		here = left(limit, directory);
		least = here < least ? here : least;
	}
	return least;
}

#endif /* KTASK_UTIL_GROUP_TREE_H */
