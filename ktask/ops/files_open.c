/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Opening and reading files: see files.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/fs.h>
#include <linux/openat2.h>

#include "files.h"

/* One name after another, none of which may be a symbolic link.  Of @dir, which
 * is closed.  Return: as openat(2). */
static int open_names(int dir, char *names, int flags)
{
	char *slash;
	int next;

	while (dir >= 0 && (slash = strchr(names, '/'))) {
		*slash = '\0';
		next = openat(dir, names,
			      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(dir);
		dir = next;
		names = slash + 1 + strspn(slash + 1, "/");
	}
	if (dir < 0)
		return dir;
	/* A directory's name may end with a slash. */
	next = openat(dir, *names ? names : ".", flags | O_NOFOLLOW);
	close(dir);
	return next;
}

/* Symbolic links are followed up to the last file->nofollow bytes only. */
static int open_beneath(const struct ktask_file *file, int flags)
{
	size_t len = strlen(file->path);
	size_t root = len > file->nofollow ? len - file->nofollow : 0;
	char *copy = malloc(len + 3);
	char *names;
	int got;

	if (!copy)
		return -1;
	/* "names", "/names" and "directory/names" in two strings. */
	memcpy(copy, file->path, root);
	names = copy + root + 2;
	memcpy(names, file->path + root, len - root + 1);
	if (!root)
		copy[root++] = *names == '/' ? '/' : '.';
	copy[root] = '\0';
	names += strspn(names, "/");
	got = open_names(open(copy, O_PATH | O_DIRECTORY | O_CLOEXEC), names,
			 flags);
	free(copy);
	return got;
}

/* In one call, where there is no link before those bytes either, which costs
 * nothing; name after name takes twice as long as warming a short file does. */
static int open_nofollow(const struct ktask_file *file, int flags)
{
	struct open_how how = { .flags = (uint64_t)flags | O_LARGEFILE,
				.resolve = RESOLVE_NO_SYMLINKS };
	long got =
		syscall(SYS_openat2, AT_FDCWD, file->path, &how, sizeof(how));

	/* Before Linux 5.6 there is no such call; a filter may refuse it by any
	 * error. */
	if (got >= 0 || (errno != ELOOP && errno != ENOSYS && errno != EPERM &&
			 errno != EACCES))
		return (int)got;
	return open_beneath(file, flags);
}

/* Opens the file of a descriptor anew: its flags and position stay as they are. */
static int open_file(const struct ktask_file *file, int flags)
{
	char self[32];

	if (file->path && file->nofollow)
		return open_nofollow(file, flags);
	if (file->path)
		return open(file->path, flags);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", file->fd);
	return open(self, flags);
}

/* Does not wait for the other end of a FIFO, but for the holder of a lease on a file. */
static int open_one(const struct ktask_file *file, int flags)
{
	int got;

	flags |= O_CLOEXEC | O_NOCTTY;
	got = open_file(file, flags | O_NONBLOCK);
	if (got < 0 && errno == EWOULDBLOCK)
		got = open_file(file, flags);
	return got < 0 ? -errno : got;
}

/*
 * @direct: whether direct I/O is wanted; set to whether the descriptor has it
 *
 * Return: a descriptor, which is the program's own if there is no path and its flags
 * fit; -errno.
 */
static int open_source(const struct ktask_file *file, bool *direct)
{
	int got = -1;

	if (*direct)
		got = open_one(file, O_RDONLY | O_DIRECT);
	*direct = got >= 0;
	if (got < 0 && file->path)
		got = open_one(file, O_RDONLY);
	if (got >= 0 || file->path)
		return got;
	return file->fd < 0 ? -EBADF : file->fd;
}

int files_open(const struct op_job *job, struct ktask_file *file,
	       struct files_open *open)
{
	*open = (struct files_open){
		.file = file,
		.direct = job->flags & KTASK_FILE_DIRECT,
	};
	open->fd = open_source(file, &open->direct);
	return open->fd < 0 ? open->fd : 0;
}

void files_close(const struct files_open *open)
{
	if (open->file->path || open->fd != open->file->fd)
		close(open->fd);
}

int files_length(int fd, uint64_t *len)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	if (S_ISBLK(stat.st_mode))
		return ioctl(fd, BLKGETSIZE64, len) ? -errno : 0;
	*len = 0;
	if (S_ISDIR(stat.st_mode))
		return -EISDIR;
	if (!S_ISREG(stat.st_mode))
		return -EINVAL;
	*len = (uint64_t)stat.st_size;
	return 0;
}

/* Let a descriptor of our own use the page cache. */
static void clear_direct(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_DIRECT);
}

ssize_t files_read(const struct files_open *open, char *buf, size_t len,
		   uint64_t offset)
{
	bool direct = open->direct;
	ssize_t got;

	for (;;) {
		got = pread(open->fd, buf, len, (off_t)offset);
		if (got >= 0)
			return got;
		if (errno == EINTR)
			continue;
		if (errno != EINVAL || !direct)
			return -errno;
		direct = false;
		clear_direct(open->fd);
	}
}
