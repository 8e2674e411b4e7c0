/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "disk.h"

void *disk_alloc(size_t bytes)
{
	void *memory = aligned_alloc(DISK_ALIGN, disk_round(bytes));

	if (memory)
		memset(memory, 0, disk_round(bytes));
	return memory;
}

int disk_open(const char *path, bool direct, bool create)
{
	int flags = O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0);
	int fd = open(path, flags | (direct ? O_DIRECT : 0), 0644);

	if (fd < 0 && errno == EINVAL && direct)
		fd = open(path, flags, 0644);
	return fd < 0 ? -errno : fd;
}

int disk_reserve(int fd, uint64_t bytes)
{
	int error = ftruncate(fd, (off_t)bytes) ? -errno : 0;

	if (error || !bytes)
		return error;
	do
		error = fallocate(fd, 0, 0, (off_t)bytes) ? -errno : 0;
	while (error == -EINTR);
	return error == -EOPNOTSUPP || error == -ENOSYS ? 0 : error;
}

int disk_write(int fd, const void *buf, size_t bytes, uint64_t offset)
{
	while (bytes) {
		ssize_t done = pwrite(fd, buf, bytes, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		/* A disk that fills up may cut a write short first. */
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		buf = (const char *)buf + done;
		bytes -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

/* Forget @done bytes of the parts; how many are left. */
static int use_up(struct iovec **parts, int nr, size_t done)
{
	while (nr && done >= (*parts)->iov_len) {
		done -= (*parts)->iov_len;
		++*parts;
		nr--;
	}
	if (nr) {
		(*parts)->iov_base = (char *)(*parts)->iov_base + done;
		(*parts)->iov_len -= done;
	}
	return nr;
}

int disk_write_parts(int fd, struct iovec *parts, int nr, uint64_t offset)
{
	while ((nr = use_up(&parts, nr, 0))) {
		ssize_t done = pwritev(fd, parts, nr, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		nr = use_up(&parts, nr, (size_t)done);
		offset += (uint64_t)done;
	}
	return 0;
}

int disk_read(int fd, void *buf, size_t bytes, uint64_t offset)
{
	while (bytes) {
		ssize_t done = pread(fd, buf, bytes, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENODATA;
		buf = (char *)buf + done;
		bytes -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

static int swap_names(const char *from, const char *to)
{
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE))
		return 0;
	/* There is no @to yet, or the file system cannot. */
	return rename(from, to) ? -errno : 0;
}

int disk_swap(const char *from, const char *to)
{
	char directory[PATH_MAX];
	int dir, error;

	if (snprintf(directory, sizeof(directory), "%s", to) >=
	    (int)sizeof(directory))
		return -ENAMETOOLONG;
	error = swap_names(from, to);
	if (error)
		return error;
	dir = open(dirname(directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	/* Some file systems cannot: the rename is then as safe as it gets. */
	error = fsync(dir) && errno != EINVAL ? -errno : 0;
	close(dir);
	return error;
}

uint64_t disk_sum(const void *buf, size_t bytes)
{
	return XXH3_64bits(buf, bytes);
}
