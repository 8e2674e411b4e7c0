/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Going through directories: see walk_files.h.
 *
 * Reads only names and types.  The lengths of files are found later, by several threads.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/ui/message.h"
#include "cli/ui/text.h"
#include "walk_files.h"

static int no_memory(void)
{
	return say_error(ENOMEM, "warm: listing files");
}

void walk_fail(struct walk *walk, const char *path, uint64_t offset,
	       const char *why)
{
	json_array_append_new(walk->failures,
			      json_pack("{s:o, s:I, s:s}", "path",
					path ? text_json(path) : json_null(),
					"offset", (json_int_t)offset, "error",
					why));
}

static void note_access(struct walk *walk, const char *path)
{
	int error = errno;

	say_error(error, "warm: accessing '%s'", path);
	walk_fail(walk, path, 0, strerror(error));
}

static bool is_file(mode_t mode)
{
	return S_ISREG(mode) || S_ISBLK(mode);
}

/* @root_len: of the path that the user named, in which links are followed */
static int append_file(struct walk *walk, const char *path, size_t root_len)
{
	const char *found = path + root_len;

	/* Doubled at each power of two. */
	if (!(walk->nr & (walk->nr - 1))) {
		size_t capacity = walk->nr ? 2 * walk->nr : 1;
		struct ktask_file *files =
			realloc(walk->files, capacity * sizeof(*files));

		if (!files)
			return no_memory();
		walk->files = files;
	}
	found += strspn(found, "/");
	walk->files[walk->nr++] =
		(struct ktask_file){ .struct_size = sizeof(struct ktask_file),
				     .path = path,
				     .fd = -1,
				     .len = KTASK_TO_END,
				     .nofollow = (unsigned)strlen(found) };
	return 0;
}

static int add_directory(struct walk *walk, const char *directory,
			 size_t root_len);

static int add_entry(struct walk *walk, const char *directory, size_t root_len,
		     const struct dirent *entry)
{
	const char *slash = directory[strlen(directory) - 1] == '/' ? "" : "/";
	mode_t mode = DTTOIF(entry->d_type);
	int status = 0;
	char *path;

	if (asprintf(&path, "%s%s%s", directory, slash, entry->d_name) < 0)
		return no_memory();
	if (entry->d_type == DT_UNKNOWN) {
		struct stat st = { 0 };

		if (lstat(path, &st))
			note_access(walk, path);
		mode = st.st_mode;
	}
	if (is_file(mode))
		return append_file(walk, path, root_len);
	if (S_ISDIR(mode))
		status = add_directory(walk, path, root_len);
	free(path);
	return status;
}

static int is_not_dot(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

/* Closed again before those in it are opened. */
static int add_directory(struct walk *walk, const char *directory,
			 size_t root_len)
{
	struct dirent **entries;
	int nr = scandir(directory, &entries, is_not_dot, NULL), status = 0;

	if (nr < 0) {
		note_access(walk, directory);
		return 0;
	}
	for (int i = 0; i < nr; i++) {
		if (!status)
			status = add_entry(walk, directory, root_len,
					   entries[i]);
		free(entries[i]);
	}
	free(entries);
	return status;
}

int walk_add(struct walk *walk, const char *path)
{
	const char *why = "not a regular file";
	struct stat st;

	if (stat(path, &st)) {
		note_access(walk, path);
		return 0;
	}
	if (is_file(st.st_mode))
		return append_file(walk, path, strlen(path));
	if (S_ISDIR(st.st_mode) && walk->recursive)
		return add_directory(walk, path, strlen(path));
	if (S_ISDIR(st.st_mode))
		why = "is a directory (--recursive goes through it)";
	say_fail("warming '%s': %s", path, why);
	walk_fail(walk, path, 0, why);
	return 0;
}
