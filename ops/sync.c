/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * sync: write what is dirty of files to disk.
 *
 * Of short files writing is begun, of all before anybody waits for one; ranges of
 * large files are written and waited for in parallel.  Then each file has its
 * fsync(2), several files at once: their journal entries are then written
 * together, and find the data of all on their way.  fsync() is the judge; that
 * a range cannot be asked for (ESPIPE, ENOSYS) is nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "files.h"

/* A file of one range has nothing to be written beside it. */
#define RANGE_BYTES (4 * MIB)

static bool is_real(int error)
{
	return error == EIO || error == ENOSPC || error == EDQUOT ||
	       error == EROFS;
}

static int write_range(const struct files_open *open, uint64_t from,
		       uint64_t to, unsigned flags)
{
	if (!sync_file_range(open->fd, (off_t)(open->file->offset + from),
			     (off_t)(to - from), flags))
		return 0;
	return is_real(errno) ? -errno : 0;
}

static int sync_begin(const struct op_job *job, struct files_open *open)
{
	uint64_t size = open->file->size;

	if (!size || size > RANGE_BYTES)
		return 0;
	return write_range(open, 0, size, SYNC_FILE_RANGE_WRITE);
}

static int sync_range(const struct op_job *job, struct files_open *open,
		      uint64_t from, uint64_t to, uint64_t *fail_at)
{
	return write_range(open, from, to,
			   SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				   SYNC_FILE_RANGE_WAIT_AFTER);
}

static int sync_file(const struct op_job *job, struct files_open *open)
{
	int error = job->flags & KTASK_SYNC_DATA ? fdatasync(open->fd)
						 : fsync(open->fd);

	return error ? -errno : 0;
}

static int sync_around(struct op_job *job)
{
	static const struct files_work work = { .folders = true,
						.prepare = sync_begin,
						.range = sync_range,
						.whole_bytes = RANGE_BYTES,
						.finish = sync_file };

	return files_go(job, &work);
}

/* min_chunk: it takes a disk 2 ms and more. */
const struct ktask_op op_sync = {
	.name = "sync",
	.summary = "write what is dirty of files to disk",
	.unit = 1,
	.min_chunk = RANGE_BYTES,
	.known_flags = KTASK_SYNC_DATA,
	.on_files = true,
	.align = files_align,
	.around = sync_around,
};
