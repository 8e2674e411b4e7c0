/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Going through directories: see walk.h.
 *
 * Only names and types are asked for; how long a file is, is found out by
 * whoever works on it, several at a time.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "failures.h"
#include "cli/ui/message.h"
#include "walk.h"

static int no_memory(const struct walk *walk)
{
	return say_error(ENOMEM, "%s: listing files", walk->command);
}

static enum walk_type type_of(mode_t mode)
{
	if (S_ISREG(mode) || S_ISBLK(mode))
		return WALK_FILE;
	if (S_ISDIR(mode))
		return WALK_DIRECTORY;
	return S_ISLNK(mode) ? WALK_LINK : WALK_OTHER;
}

/* Takes over @path. */
static int append_entry(struct walk *walk, char *path, size_t root_len,
			enum walk_type type)
{
	if (walk->nr == walk->capacity) {
		size_t capacity = walk->capacity ? 2 * walk->capacity : 64;
		struct walk_entry *entries =
			realloc(walk->entries, capacity * sizeof(*entries));

		if (!entries) {
			free(path);
			return no_memory(walk);
		}
		walk->entries = entries;
		walk->capacity = capacity;
	}
	walk->entries[walk->nr++] = (struct walk_entry){ path, root_len, type };
	return 0;
}

static void note_failure(struct walk *walk, const char *path)
{
	int error = errno;

	say_error(error, "%s: accessing %s", walk->command, path);
	failures_add(walk->failures, path, 0, strerror(error));
}

static int add_child(struct walk *walk, const char *directory, size_t root_len,
		     const struct dirent *entry)
{
	const char *slash = directory[strlen(directory) - 1] == '/' ? "" : "/";
	enum walk_type type;
	struct stat stat;
	char *path;

	if (asprintf(&path, "%s%s%s", directory, slash, entry->d_name) < 0)
		return no_memory(walk);
	if (entry->d_type != DT_UNKNOWN) {
		type = type_of(DTTOIF(entry->d_type));
	} else if (lstat(path, &stat)) {
		note_failure(walk, path);
		free(path);
		return 0;
	} else {
		type = type_of(stat.st_mode);
	}
	return append_entry(walk, path, root_len, type);
}

static int add_children(struct walk *walk, const char *directory,
			size_t root_len)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	int status = 0;

	if (!dir) {
		note_failure(walk, directory);
		return 0;
	}
	while (!status && (errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			status = add_child(walk, directory, root_len, entry);
	}
	if (!status && errno)
		note_failure(walk, directory);
	closedir(dir);
	return status;
}

int walk_add(struct walk *walk, const char *path)
{
	size_t first = walk->nr;
	struct stat stat_buf;
	char *copy;
	int status;

	if (stat(path, &stat_buf)) {
		note_failure(walk, path);
		return 0;
	}
	copy = strdup(path);
	if (!copy)
		return no_memory(walk);
	status = append_entry(walk, copy, strlen(path),
			      type_of(stat_buf.st_mode));
	/* Directories that are found are appended, and gone through in turn. */
	for (size_t i = first; walk->recursive && !status && i < walk->nr; i++)
		if (walk->entries[i].type == WALK_DIRECTORY)
			status = add_children(walk, walk->entries[i].path,
					      strlen(path));
	return status;
}

unsigned walk_found(const struct walk_entry *entry)
{
	const char *found = entry->path + entry->root_len;

	return (unsigned)strlen(found + strspn(found, "/"));
}

void walk_free(struct walk *walk)
{
	for (size_t i = 0; i < walk->nr; i++)
		free(walk->entries[i].path);
	free(walk->entries);
}
