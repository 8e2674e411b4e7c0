/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Files and memory to warm: see warm_target.h.
 *
 * Pages of tmpfs and hugetlbfs files are made as if written, because reading
 * a hole there allocates nothing; an ordinary file is read into the page
 * cache and never becomes dirty.  A file's length is changed only on request,
 * and changed back when warming it fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "cli/ui/message.h"
#include "cli/ui/size.h"
#include "warm_target.h"

/* Does not wait for the other end of a FIFO, but for the holder of a lease. */
static int open_now(const char *path, int flags)
{
	int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno == EWOULDBLOCK)
		fd = open(path, flags | O_NOCTTY | O_CLOEXEC);
	return fd;
}

static int map_target(struct warm *warm, int prot, int flags)
{
	warm->addr = mmap(NULL, warm->size_bytes, prot, flags, warm->fd, 0);
	return warm->addr == MAP_FAILED ? -errno : 0;
}

int warm_open_memory(struct warm *warm, uint64_t size_bytes)
{
	char text[SIZE_TEXT];
	int error;

	*warm = (struct warm){ .kind = WARM_ANON, .fd = -1 };
	warm->page_bytes = sysconf(_SC_PAGESIZE);
	warm->size_bytes = size_bytes;
	error = map_target(warm, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	if (error)
		return say_error(-error, "mapping %s of memory",
				 size_text(text, size_bytes));
	/* Advice: huge pages where the system has them. */
	madvise(warm->addr, warm->size_bytes, MADV_HUGEPAGE);
	return 0;
}

static int find_kind(struct warm *warm)
{
	struct statfs fs;

	if (fstatfs(warm->fd, &fs))
		return -errno;
	warm->page_bytes = sysconf(_SC_PAGESIZE);
	warm->flags = 0;
	if (fs.f_type == HUGETLBFS_MAGIC) {
		warm->kind = WARM_HUGETLBFS;
		warm->page_bytes = fs.f_bsize;
	} else if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC) {
		warm->kind = WARM_TMPFS;
	} else {
		warm->kind = WARM_FILE;
		warm->flags = KTASK_POPULATE_READ;
	}
	return 0;
}

/* Sets fd, created, kind and size_bytes; on failure fd may be open. */
static int open_file(struct warm *warm, bool allocate)
{
	struct stat stat;
	int error;

	if (allocate)
		warm->fd = open(warm->path,
				O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	warm->created = warm->fd >= 0;
	if (!warm->created)
		warm->fd = open_now(warm->path, allocate ? O_RDWR : O_RDONLY);
	if (warm->fd < 0 || fstat(warm->fd, &stat))
		return -errno;
	if (S_ISDIR(stat.st_mode))
		return -EISDIR;
	if (!S_ISREG(stat.st_mode))
		return -EINVAL;
	error = find_kind(warm);
	if (error)
		return error;
	warm->size_bytes = stat.st_size;
	warm->former_bytes = stat.st_size;
	return 0;
}

/* Pages of these are made by writing, so a descriptor to write is needed. */
static int reopen_to_write(struct warm *warm)
{
	int fd;

	if (warm->kind == WARM_FILE)
		return 0;
	fd = open_now(warm->path, O_RDWR);
	if (fd < 0)
		return -errno;
	close(warm->fd);
	warm->fd = fd;
	return 0;
}

/* An ordinary file gets its blocks here; memory comes from populating. */
static int grow_file(struct warm *warm, uint64_t bytes)
{
	bytes = (bytes + warm->page_bytes - 1) / warm->page_bytes *
		warm->page_bytes;
	if (bytes <= warm->size_bytes)
		return 0;
	warm->grown_bytes = bytes;
	if (ftruncate(warm->fd, bytes))
		return -errno;
	if (warm->kind == WARM_FILE &&
	    fallocate(warm->fd, 0, warm->former_bytes,
		      bytes - warm->former_bytes))
		return -errno;
	warm->size_bytes = bytes;
	return 0;
}

static int map_file(struct warm *warm)
{
	int prot = PROT_READ;

	if (!warm->size_bytes)
		return 0;
	if (warm->kind != WARM_FILE)
		prot |= PROT_WRITE;
	return map_target(warm, prot, MAP_SHARED);
}

static uint64_t available_bytes(const struct warm *warm)
{
	struct statvfs fs;

	if (warm->fd < 0 || fstatvfs(warm->fd, &fs))
		return 0;
	return (uint64_t)fs.f_bsize * fs.f_bavail;
}

const char *warm_why(const struct warm *warm, int error, char buf[160])
{
	bool no_page = error == -ENOMEM || error == -EFAULT;
	char text[SIZE_TEXT];

	if (no_page && warm->kind == WARM_HUGETLBFS)
		snprintf(buf, 160, "too few free huge pages of %s",
			 size_text(text, warm->page_bytes));
	else if (no_page && warm->kind == WARM_TMPFS)
		snprintf(buf, 160,
			 "out of memory for its pages (%s left in its tmpfs)",
			 size_text(text, available_bytes(warm)));
	else if (error == -EFAULT && warm->kind == WARM_FILE)
		snprintf(buf, 160,
			 "it cannot be read there, or has become shorter");
	else
		snprintf(buf, 160, "%s", strerror(-error));
	return buf;
}

int warm_open_file(struct warm *warm, const char *path, uint64_t allocate_bytes)
{
	const char *doing = "opening";
	char why[160];
	int error;

	*warm = (struct warm){ .path = path, .fd = -1 };
	error = open_file(warm, allocate_bytes > 0);
	if (!error && !allocate_bytes)
		error = reopen_to_write(warm);
	if (!error && allocate_bytes) {
		doing = "allocating";
		error = grow_file(warm, allocate_bytes);
	}
	if (!error) {
		doing = "mapping";
		error = map_file(warm);
	}
	if (!error)
		return 0;
	if (error == -EINVAL && !strcmp(doing, "opening"))
		say_fail("opening %s: not a regular file", path);
	else
		say_fail("%s %s: %s", doing, path, warm_why(warm, error, why));
	warm->addr = NULL;
	warm_undo(warm);
	warm_close(warm);
	return 1;
}

/* If another process has changed the length meanwhile, leave the file as it is. */
static bool is_as_grown(const struct warm *warm)
{
	struct stat stat;

	return warm->grown_bytes && !fstat(warm->fd, &stat) &&
	       (uint64_t)stat.st_size == warm->grown_bytes;
}

void warm_undo(struct warm *warm)
{
	if (warm->created)
		unlink(warm->path);
	else if (is_as_grown(warm) && ftruncate(warm->fd, warm->former_bytes))
		say_error(errno, "restoring the length of %s", warm->path);
}

void warm_close(struct warm *warm)
{
	if (warm->addr)
		munmap(warm->addr, warm->size_bytes);
	if (warm->fd >= 0)
		close(warm->fd);
}
