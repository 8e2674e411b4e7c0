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

void files_undirect(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_DIRECT);
}

/* What is to be opened. */
struct place {
	const char *path; /* NULL: fd */
	unsigned nofollow;
	int fd;
};

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
	/* A folder's name may end with a slash. */
	next = openat(dir, *names ? names : ".", flags | O_NOFOLLOW);
	close(dir);
	return next;
}

/* Symbolic links are followed up to the last place->nofollow bytes only. */
static int open_beneath(const struct place *place, int flags)
{
	size_t len = strlen(place->path);
	size_t root = len > place->nofollow ? len - place->nofollow : 0;
	char *copy = malloc(len + 3);
	char *names;
	int got;

	if (!copy)
		return -1;
	/* "names", "/names" and "folder/names" in two strings. */
	memcpy(copy, place->path, root);
	names = copy + root + 2;
	memcpy(names, place->path + root, len - root + 1);
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
static int open_nofollow(const struct place *place, int flags)
{
	struct open_how how = { .flags = (uint64_t)flags | O_LARGEFILE,
				.resolve = RESOLVE_NO_SYMLINKS };
	long got =
		syscall(SYS_openat2, AT_FDCWD, place->path, &how, sizeof(how));

	/* Before Linux 5.6 there is no such call; a filter may refuse it by any
	 * error. */
	if (got >= 0 || (errno != ELOOP && errno != ENOSYS && errno != EPERM &&
			 errno != EACCES))
		return (int)got;
	return open_beneath(place, flags);
}

/* Of a descriptor: its flags and its position stay the caller's. */
static int open_place(const struct place *place, int flags)
{
	char self[32];

	if (place->path && place->nofollow)
		return open_nofollow(place, flags);
	if (place->path)
		return open(place->path, flags);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", place->fd);
	return open(self, flags);
}

/* Nobody waits here for the other end of a FIFO; but for who has a lease on a
 * file. */
static int open_one(const struct place *place, int flags)
{
	int got;

	flags |= O_CLOEXEC | O_NOCTTY;
	got = open_place(place, flags | O_NONBLOCK);
	if (got < 0 && errno == EWOULDBLOCK)
		got = open_place(place, flags);
	return got < 0 ? -errno : got;
}

/*
 * @own: one of our own is wanted; set to whether it is, as a path's always is.
 *
 * Return: a descriptor, or -errno.
 */
static int open_as(const struct place *place, int flags, bool *direct,
		   bool *own)
{
	int got = -1;

	if (*direct)
		got = open_one(place, flags | O_DIRECT);
	*direct = got >= 0;
	if (got < 0 && (place->path || *own))
		got = open_one(place, flags);
	*own = place->path || got >= 0;
	if (*own)
		return got;
	return place->fd < 0 ? -EBADF : place->fd;
}

static void close_one(const char *path, int own_fd, int fd)
{
	if (own_fd >= 0 && (path || own_fd != fd))
		close(own_fd);
}

void files_close(const struct files_open *open)
{
	const struct ktask_file *file = open->file;

	close_one(file->path, open->fd, file->fd);
	close_one(file->dst_path, open->dst_fd, file->dst_fd);
}

/* Directly, blocks of both must lie alike. */
static bool wants_direct(const struct op_job *job,
			 const struct files_work *work,
			 const struct ktask_file *file)
{
	if (!work->may_direct || !(job->flags & KTASK_FILE_DIRECT))
		return false;
	return !work->writes ||
	       !((file->offset | file->dst_offset) % FILES_BLOCK);
}

int files_open(const struct op_job *job, const struct files_work *work,
	       struct ktask_file *file, struct files_open *open)
{
	const struct place from = { file->path, file->nofollow, file->fd };
	const struct place to = { file->dst_path, file->dst_nofollow,
				  file->dst_fd };
	bool direct = wants_direct(job, work, file);
	bool dst_direct = direct, dst_own = false;

	*open = (struct files_open){ .file = file,
				     .dst_fd = -1,
				     .own = work->writes,
				     .arg = work->arg };
	open->fd = open_as(&from, O_RDONLY, &direct, &open->own);
	if (open->fd < 0 || !work->writes)
		goto out;
	open->dst_fd = open_as(&to, O_WRONLY, &dst_direct, &dst_own);
	if (open->dst_fd < 0) {
		close_one(file->path, open->fd, file->fd);
		return open->dst_fd;
	}
	/* Both or none. */
	if (direct && !dst_direct)
		files_undirect(open->fd);
	if (!direct && dst_direct)
		files_undirect(open->dst_fd);
	direct = direct && dst_direct;
out:
	open->direct = direct;
	return open->fd < 0 ? open->fd : 0;
}

int files_length(int fd, bool folders, uint64_t *len)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	if (S_ISBLK(stat.st_mode))
		return ioctl(fd, BLKGETSIZE64, len) ? -errno : 0;
	*len = 0;
	if (S_ISDIR(stat.st_mode))
		return folders ? 0 : -EISDIR;
	if (!S_ISREG(stat.st_mode))
		return -EINVAL;
	*len = (uint64_t)stat.st_size;
	return 0;
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
		files_undirect(open->fd);
	}
}
