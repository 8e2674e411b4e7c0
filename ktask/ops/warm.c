/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * warm: read files into the page cache.
 *
 * Uses sendfile(2) to /dev/null, which makes the pages present, waits for them and copies
 * nothing: 2 GiB that are cached already take 0.05 s; pread(2) into a small buffer takes
 * 0.33 s.  If a file system cannot do that, or there is no /dev/null, pread() is used.
 * readahead(2) and MADV_WILLNEED would neither wait nor report errors.
 *
 * With KTASK_FILE_DIRECT the data are only read.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "files.h"

/*
 * Return: the first position that was not warmed.  Reading from there then tells why.
 */
static uint64_t send_range(int fd, int null_fd, uint64_t start, uint64_t end)
{
	off_t pos = (off_t)start;

	while (null_fd >= 0 && (uint64_t)pos < end) {
		ssize_t sent = sendfile(null_fd, fd, &pos,
					(size_t)(end - (uint64_t)pos));

		if (!sent || (sent < 0 && errno != EINTR))
			break;
	}
	return (uint64_t)pos;
}

struct reading {
	const struct files_open *open;
	uint64_t pos; /* what lies before was read */
	uint64_t end;
};

static int read_by_blocks(const struct files_buffer *buffer, void *arg)
{
	struct reading *reading = arg;
	ssize_t got = 1;

	while (reading->pos < reading->end && got > 0) {
		uint64_t len = (reading->end - reading->pos + FILES_BLOCK - 1) &
			       ~(uint64_t)(FILES_BLOCK - 1);

		got = files_read(reading->open, buffer->at,
				 len < buffer->len ? len : buffer->len,
				 reading->pos);
		if (got > 0)
			reading->pos += (uint64_t)got;
	}
	return got < 0 ? (int)got : 0;
}

/* From a block's beginning: direct reads want that. */
static int read_range(const struct files_open *open, uint64_t start,
		      uint64_t end, uint64_t *fail_pos)
{
	struct reading reading = { open, start & ~(uint64_t)(FILES_BLOCK - 1),
				   end };
	int error = files_with_buffer(open->buffers, read_by_blocks, &reading);

	*fail_pos = reading.pos > start ? reading.pos : start;
	return error;
}

static int warm_range(struct files_open *open, uint64_t from, uint64_t to,
		      uint64_t *fail_at)
{
	uint64_t start = open->file->offset + from;
	uint64_t end = open->file->offset + to;
	int error;

	if (!open->direct)
		start = send_range(open->fd, *(const int *)open->arg, start,
				   end);
	if (start >= end)
		return 0;
	error = read_range(open, start, end, &start);
	*fail_at = start - open->file->offset;
	/* The file has become shorter: there is no more to be warmed. */
	open->missed = start < end ? end - start : 0;
	return error;
}

static int warm_around(struct op_job *job)
{
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int error = files_run_job(job, warm_range, &null_fd);

	if (null_fd >= 0)
		close(null_fd);
	return error;
}

/*
 * min_chunk: 1 MiB takes 25 us if it is cached already, from a disk 600; 16 small files
 * take 100 us and more.
 */
const struct ktask_op op_warm = {
	.name = "warm",
	.summary = "read files into the page cache",
	.unit = 1,
	.min_chunk = MIB,
	.known_flags = KTASK_FILE_DIRECT,
	.on_files = true,
	.align = files_align,
	.around = warm_around,
};
