/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * sync: write what is dirty of files to disk.
 *
 * Ranges of large files are written and waited for in parallel, then each file
 * has its fsync(2), several files at once: their journal entries are then
 * written together.  fsync() is the judge; that a range cannot be asked for
 * (ESPIPE, ENOSYS) is nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "files.h"

/* A shorter file is written by its fsync() as fast. */
#define RANGE_LEAST MIB

static bool is_real(int error)
{
	return error == EIO || error == ENOSPC || error == EDQUOT ||
	       error == EROFS;
}

static int sync_range(const struct op_job *job, const struct files_open *open,
		      uint64_t from, uint64_t to, uint64_t *fail_at)
{
	const unsigned all = SYNC_FILE_RANGE_WAIT_BEFORE |
			     SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

	if (open->file->size < RANGE_LEAST)
		return 0;
	if (!sync_file_range(open->fd, (off_t)(open->file->offset + from),
			     (off_t)(to - from), all))
		return 0;
	return is_real(errno) ? -errno : 0;
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
						.range = sync_range,
						.finish = sync_file };

	return files_go(job, &work);
}

/* min_chunk: 4 MiB take a disk 2 ms and more. */
const struct ktask_op op_sync = {
	.name = "sync",
	.summary = "write what is dirty of files to disk",
	.unit = 1,
	.min_chunk = 4 * MIB,
	.known_flags = KTASK_SYNC_DATA,
	.on_files = true,
	.align = files_align,
	.around = sync_around,
};
