/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Going through folders: see walk.h.
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

#include "say.h"
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
		return WALK_FOLDER;
	return S_ISLNK(mode) ? WALK_LINK : WALK_OTHER;
}

/* Takes over @path. */
static int append(struct walk *walk, char *path, size_t root_len,
		  enum walk_type type)
{
	if (walk->nr == walk->room) {
		size_t room = walk->room ? 2 * walk->room : 64;
		struct walk_entry *entries =
			realloc(walk->entries, room * sizeof(*entries));

		if (!entries) {
			free(path);
			return no_memory(walk);
		}
		walk->entries = entries;
		walk->room = room;
	}
	walk->entries[walk->nr++] = (struct walk_entry){ path, root_len, type };
	return 0;
}

static void note_failure(struct walk *walk, const char *path)
{
	walk->failed = true;
	say_error(errno, "%s: looking at %s", walk->command, path);
}

static int add_child(struct walk *walk, const char *folder, size_t root_len,
		     const struct dirent *entry)
{
	const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
	enum walk_type type;
	struct stat stat;
	char *path;

	if (asprintf(&path, "%s%s%s", folder, slash, entry->d_name) < 0)
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
	return append(walk, path, root_len, type);
}

static int add_children(struct walk *walk, const char *folder, size_t root_len)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int status = 0;

	if (!dir) {
		note_failure(walk, folder);
		return 0;
	}
	while (!status && (errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			status = add_child(walk, folder, root_len, entry);
	}
	if (!status && errno)
		note_failure(walk, folder);
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
	status = append(walk, copy, strlen(path), type_of(stat_buf.st_mode));
	/* Folders that are found are appended, and gone through in turn. */
	for (size_t i = first; walk->recursive && !status && i < walk->nr; i++)
		if (walk->entries[i].type == WALK_FOLDER)
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
