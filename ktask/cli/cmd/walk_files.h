/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The files behind the paths that a user names: a list, made before anything is
 * done with them.  Directories are walked on request; symbolic links in them
 * are not followed, the paths themselves are.
 */
#ifndef KTASK_CLI_WALK_FILES_H
#define KTASK_CLI_WALK_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <ktask/ops.h>

struct walk {
	bool recursive;
	struct ktask_file
		*files; /* they, and their paths, are there to the end */
	size_t nr;
	json_t *failures; /* an array: what a message was given of */
};

/**
 * walk_add - the file @path, or with recursive the files in it
 *
 * Prints a message for a path that is no file, and goes on; block devices count as files.
 *
 * Return: 0, or 1 after a message where there is no memory.
 */
int walk_add(struct walk *walk, const char *path);

/** walk_fail - note a failure of @path (NULL: of all), from byte @offset on */
void walk_fail(struct walk *walk, const char *path, uint64_t offset,
	       const char *why);

#endif /* KTASK_CLI_WALK_FILES_H */
