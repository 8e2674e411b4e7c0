/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The names in a directory.  Not by readdir(3), which allocates: the caller may be an
 * allocator that holds its lock, or a handler that has interrupted one, and in a job an
 * allocation may take the lock of the process's mappings.  Needs 1 KiB of stack.
 */
#ifndef KTASK_UTIL_DIRECTORY_NAMES_H
#define KTASK_UTIL_DIRECTORY_NAMES_H

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

struct directory_names {
	int fd;
	long at, len;
	union {
		struct dirent64 first;
		char bytes[1024];
	} entries;
};

/* directory_names_begin - a directory that cannot be read has none */
static inline void directory_names_begin(struct directory_names *names,
					 const char *path)
{
	names->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	names->at = names->len = 0;
}

/* directory_names_next - "." and ".." as well; NULL behind the last one */
static inline const char *directory_names_next(struct directory_names *names)
{
	const struct dirent64 *entry;

	if (names->at >= names->len) {
		names->at = 0;
		names->len = syscall(SYS_getdents64, names->fd, &names->entries,
				     sizeof(names->entries));
	}
	if (names->len <= 0)
		return NULL;
	entry = (const void *)(names->entries.bytes + names->at);
	names->at += entry->d_reclen;
	return entry->d_name;
}

static inline void directory_names_end(const struct directory_names *names)
{
	if (names->fd >= 0)
		close(names->fd);
}

#endif /* KTASK_UTIL_DIRECTORY_NAMES_H */
