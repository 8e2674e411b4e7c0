/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * copy_file: ranges of files to other files.
 *
 * By copy_file_range(2), one copy in the kernel, or none where blocks can be
 * shared; where that is refused by reading and writing, whose error is then
 * the verdict.  The destination gets its length before the first range, so that
 * threads do not wait for one another to make it longer; with
 * KTASK_FILE_DIRECT its blocks as well, without which direct writes to one
 * file are made one after another.  One that is to be emptied gets both, and is
 * emptied, by whoever comes to a range of it first.
 *
 * Nothing is made up: a source that turns out shorter than it was is -ENODATA.
 * One that still says to be longer than what can be read of it (those of sysfs
 * all say 4096) is copied as far as it can be read, where the destination is
 * emptied and shall become like it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

/* A file is emptied in parts of so much, 5 ms of pages in the cache; and in no
 * more parts than this. */
#define CUT_BYTES ((off_t)64 << 20)
#define CUTS_MAX 1024

/* Bytes at @pos of both, counted from the beginnings of the ranges. */
struct copying {
	const struct op_job *job;
	const struct files_open *open;
	uint64_t pos; /* what lies before is done */
	bool direct;
	uint64_t end; /* of the data that are copied now */
	uint64_t missed; /* could not be read */
};

static uint64_t src_of(const struct copying *copying)
{
	return copying->open->file->offset + copying->pos;
}

static uint64_t dst_of(const struct copying *copying)
{
	return copying->open->file->dst_offset + copying->pos;
}

/* Return: true when the end was reached. */
static bool by_kernel(struct copying *copying)
{
	while (copying->pos < copying->end) {
		off_t src = (off_t)src_of(copying),
		      dst = (off_t)dst_of(copying);
		ssize_t done = copy_file_range(copying->open->fd, &src,
					       copying->open->dst_fd, &dst,
					       copying->end - copying->pos, 0);

		if (!done || (done < 0 && errno != EINTR))
			return false;
		if (done > 0)
			copying->pos += (uint64_t)done;
	}
	return true;
}

/* Directly as far as whole blocks go. */
static ssize_t write_some(struct copying *copying, const char *buf, size_t len)
{
	size_t whole = len & ~(size_t)(FILES_BLOCK - 1);
	ssize_t done;

	if (copying->direct && !whole) {
		files_undirect(copying->open->dst_fd);
		copying->direct = false;
	}
	done = pwrite(copying->open->dst_fd, buf, copying->direct ? whole : len,
		      (off_t)dst_of(copying));
	if (done < 0 && errno == EINVAL && copying->direct) {
		files_undirect(copying->open->dst_fd);
		copying->direct = false;
		return 0;
	}
	if (done < 0)
		return errno == EINTR ? 0 : -errno;
	/* A file system that takes nothing and says nothing. */
	return done ? done : -EIO;
}

static int write_all(struct copying *copying, const char *buf, size_t len)
{
	while (len) {
		ssize_t done = write_some(copying, buf, len);

		if (done < 0)
			return (int)done;
		buf += done;
		len -= (size_t)done;
		copying->pos += (uint64_t)done;
	}
	return 0;
}

/* With the lock held.  The least that anybody found counts. */
static int shorten(const struct files_open *open, uint64_t end)
{
	struct stat dst;

	if (fstat(open->dst_fd, &dst) || ((uint64_t)dst.st_size > end &&
					  ftruncate(open->dst_fd, (off_t)end)))
		return -errno;
	return 0;
}

/* There is no more to be read, before the end that the source had. */
static int end_early(struct copying *copying)
{
	const struct files_open *open = copying->open;
	struct stat src;
	int error;

	if (!(copying->job->flags & KTASK_FILE_TRUNCATE) ||
	    open->file->len != KTASK_TO_END || fstat(open->fd, &src) ||
	    !S_ISREG(src.st_mode) || src.st_blocks ||
	    (uint64_t)src.st_size <= src_of(copying))
		return -ENODATA;
	pthread_mutex_lock(open->lock);
	error = shorten(open, dst_of(copying));
	pthread_mutex_unlock(open->lock);
	copying->missed += copying->end - copying->pos;
	copying->pos = copying->end;
	return error;
}

static int by_hand(const struct files_buffer *buffer, void *arg)
{
	struct copying *copying = arg;
	int error = 0;

	while (!error && copying->pos < copying->end) {
		uint64_t left = copying->end - copying->pos;
		size_t len = left < buffer->len ? left : buffer->len;
		/* Behind the end of the file there is nothing to be read. */
		size_t ask =
			(len + FILES_BLOCK - 1) & ~(size_t)(FILES_BLOCK - 1);
		ssize_t got = files_read(copying->open, buffer->at,
					 copying->direct ? ask : len,
					 src_of(copying));

		if (got < 0)
			error = (int)got;
		else if (!got)
			error = end_early(copying);
		else
			error = write_all(copying, buffer->at,
					  (size_t)got < len ? (size_t)got
							    : len);
	}
	return error;
}

/* Up to copying->end. */
static int copy_data(struct copying *copying)
{
	if (!copying->direct && by_kernel(copying))
		return 0;
	return files_with_buffer(copying->open->buffers, by_hand, copying);
}

/* Nothing but a hole up to the end of the file, which may be before @end. */
static void skip_last_hole(struct copying *copying, uint64_t end)
{
	off_t size = lseek(copying->open->fd, 0, SEEK_END);
	uint64_t base = copying->open->file->offset;
	uint64_t last = size > (off_t)base ? (uint64_t)size - base : 0;

	if (last > copying->pos)
		copying->pos = last < end ? last : end;
}

/* The next bytes that are no hole: from copying->pos to what is returned. */
static uint64_t next_data(struct copying *copying, uint64_t end)
{
	uint64_t base = copying->open->file->offset;
	int fd = copying->open->fd;
	off_t data, hole;

	data = lseek(fd, (off_t)src_of(copying), SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		skip_last_hole(copying, end);
	if (data < 0)
		return end;
	hole = lseek(fd, data, SEEK_HOLE);
	copying->pos =
		(uint64_t)data - base < end ? (uint64_t)data - base : end;
	if (hole < 0 || (uint64_t)hole - base > end)
		return end;
	return (uint64_t)hole - base;
}

static bool has_holes(const struct stat *src)
{
	return S_ISREG(src->st_mode) && src->st_blocks * 512 < src->st_size;
}

/* With the lock held. */
static int lengthen(const struct files_open *open, uint64_t end)
{
	struct stat dst;

	if (fstat(open->dst_fd, &dst) || ((uint64_t)dst.st_size < end &&
					  ftruncate(open->dst_fd, (off_t)end)))
		return -errno;
	return 0;
}

/* Several files of a job may have the same destination: the longest counts. */
static int make_longer(const struct files_open *open, uint64_t end)
{
	int error;

	pthread_mutex_lock(open->lock);
	error = lengthen(open, end);
	pthread_mutex_unlock(open->lock);
	return error;
}

static int make_room(const struct op_job *job, const struct files_open *open,
		     const struct stat *src, uint64_t end)
{
	const struct ktask_file *file = open->file;

	if (open->direct &&
	    !(job->flags & KTASK_FILE_SPARSE && has_holes(src))) {
		if (!fallocate(open->dst_fd, 0, (off_t)file->dst_offset,
			       (off_t)file->size))
			return 0;
		if (errno != EOPNOTSUPP && errno != ENOSYS)
			return -errno;
	}
	return make_longer(open, end);
}

/*
 * A part of what the destination held, from its end on: others may wait for the
 * lock, whose owner may be a helper of the lowest priority.
 */
static int cut_some(const struct files_open *open, bool *empty)
{
	off_t size, step = CUT_BYTES;
	struct stat dst;

	if (fstat(open->dst_fd, &dst))
		return -errno;
	if (dst.st_size / CUTS_MAX > step)
		step = dst.st_size / CUTS_MAX;
	size = dst.st_size > step ? dst.st_size - step : 0;
	*empty = !size;
	return ftruncate(open->dst_fd, size) ? -errno : 0;
}

static int empty_some(const struct files_open *open, uint64_t end, bool *mine)
{
	struct ktask_file *file = open->file;
	bool empty = false;
	int error = 0;

	pthread_mutex_lock(open->lock);
	if (!file->private_begun) {
		error = cut_some(open, &empty);
		if (!error && empty)
			error = lengthen(open, end);
		*mine = !error && empty;
		if (*mine)
			__atomic_store_n(&file->private_begun, 1,
					 __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(open->lock);
	return error;
}

/* By whoever comes first to a range of it; before anything is written to it. */
static int begin_emptied(const struct op_job *job,
			 const struct files_open *open)
{
	const struct ktask_file *file = open->file;
	uint64_t end = file->dst_offset + file->size;
	bool mine = false;
	struct stat src;
	int error = 0;

	while (!error &&
	       !__atomic_load_n(&file->private_begun, __ATOMIC_ACQUIRE))
		error = empty_some(open, end, &mine);
	if (error || !mine)
		return error;
	return fstat(open->fd, &src) ? -errno : make_room(job, open, &src, end);
}

static int copy_range(const struct op_job *job, struct files_open *open,
		      uint64_t from, uint64_t to, uint64_t *fail_at)
{
	struct copying copying = { job, open, from, open->direct, to, 0 };
	bool sparse = job->flags & KTASK_FILE_SPARSE && open->own;
	int error = 0;

	if (job->flags & KTASK_FILE_TRUNCATE)
		error = begin_emptied(job, open);
	while (!error && copying.pos < to) {
		copying.end = sparse ? next_data(&copying, to) : to;
		error = copy_data(&copying);
	}
	*fail_at = copying.pos;
	open->missed = copying.missed;
	return error;
}

static int check_access(const struct ktask_file *file)
{
	int flags;

	if (!file->path) {
		flags = fcntl(file->fd, F_GETFL);
		if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY)
			return -EBADF;
	}
	if (!file->dst_path) {
		flags = fcntl(file->dst_fd, F_GETFL);
		if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY ||
		    flags & O_APPEND)
			return -EBADF;
	}
	return 0;
}

/* A file that says to be empty, as those of /proc do, is read to its end. */
static int copy_unsized(const struct op_job *job, struct files_open *open)
{
	struct copying copying = { .job = job, .open = open };
	char buf[FILES_BLOCK];
	ssize_t got;
	int error = 0;

	while (!error) {
		got = files_read(open, buf, sizeof(buf), src_of(&copying));
		open->unsaid = copying.pos;
		if (got <= 0)
			return (int)got;
		if (open->direct)
			files_undirect(open->dst_fd);
		error = write_all(&copying, buf, (size_t)got);
	}
	return error;
}

static int prepare_empty(const struct op_job *job, struct files_open *open,
			 const struct stat *src, const struct stat *dst)
{
	if (job->flags & KTASK_FILE_TRUNCATE && S_ISREG(dst->st_mode) &&
	    ftruncate(open->dst_fd, 0))
		return -errno;
	if (!S_ISREG(src->st_mode) || !S_ISREG(dst->st_mode) ||
	    open->file->len != KTASK_TO_END)
		return 0;
	return copy_unsized(job, open);
}

static int copy_prepare(const struct op_job *job, struct files_open *open)
{
	const struct ktask_file *file = open->file;
	uint64_t end = file->dst_offset + file->size;
	struct stat src, dst;
	int error = check_access(file);

	if (error)
		return error;
	if (fstat(open->fd, &src) || fstat(open->dst_fd, &dst))
		return -errno;
	if (src.st_dev == dst.st_dev && src.st_ino == dst.st_ino)
		return -EINVAL;
	if (!file->size)
		return prepare_empty(job, open, &src, &dst);
	if (job->flags & KTASK_FILE_TRUNCATE && S_ISREG(dst.st_mode))
		return 0;
	open->file->private_begun = 1;
	if (S_ISBLK(dst.st_mode))
		return 0;
	if (!S_ISREG(dst.st_mode))
		return -EINVAL;
	if (end > (uint64_t)dst.st_size)
		return make_room(job, open, &src, end);
	return 0;
}

static int copy_file_around(struct op_job *job)
{
	static const struct files_work work = { .reads = true,
						.writes = true,
						.may_direct = true,
						.prepare = copy_prepare,
						.range = copy_range };

	return files_go(job, &work);
}

/* min_chunk: 1 MiB that is there already takes 200 us, of a disk 1200. */
const struct ktask_op op_copy_file = {
	.name = "copy_file",
	.summary = "copy ranges of files to other files",
	.unit = 1,
	.min_chunk = MIB,
	.known_flags =
		KTASK_FILE_DIRECT | KTASK_FILE_SPARSE | KTASK_FILE_TRUNCATE,
	.on_files = true,
	.align = files_align,
	.around = copy_file_around,
};
