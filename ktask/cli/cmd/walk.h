/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The files behind the paths that a user names: a list, made before anything is
 * done with them.  Directories are walked on request; symbolic links in them
 * are not followed, the paths themselves are.
 */
#ifndef KTASK_CLI_WALK_H
#define KTASK_CLI_WALK_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

enum walk_type { WALK_FILE, WALK_DIRECTORY, WALK_LINK, WALK_OTHER };

struct walk_entry {
	char *path;
	size_t root_len; /* of the path that the user named */
	enum walk_type type;
};

struct walk {
	bool recursive;
	const char *command; /* for messages */
	struct walk_entry *entries; /* a directory before what is in it */
	size_t nr;
	size_t capacity;
	json_t *failures; /* the caller's array: what a message was given of */
};

/**
 * walk_add - @path, and with recursive what is in it
 *
 * What cannot be looked at gets a message, and the rest goes on; block devices
 * count as files.
 *
 * Return: 0, or 1 after a message where there is no memory.
 */
int walk_add(struct walk *walk, const char *path);

/** walk_found - bytes at the end of its path that walking directories found,
 * in which there was no symbolic link */
unsigned walk_found(const struct walk_entry *entry);

void walk_free(struct walk *walk);

#endif /* KTASK_CLI_WALK_H */
