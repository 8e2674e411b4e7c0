/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where the contents of missing pages come from: a file, a function of the program,
 * or a stream, which one thread at a time reads while others copy.
 *
 * A stream may stall.  The caller waits in slices, between which it checks the deadline
 * and calls the progress function.  A helper waits for one slice only, because the job
 * cannot end before the helper does.  The part of a page that has come by then is kept
 * for the next reader.
 *
 * Locking: uffd_job.h.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "uffd_job.h"
#include "unwinding.h"
#include "util/assertion.h"

#define SLICE_MS 20
#define NSEC_PER_MSEC 1000000ull

static int read_file(const struct uffd_job *uffd, char *buf, size_t len,
		     uint64_t offset, size_t *came)
{
	uint64_t pos = uffd->fill->offset + offset;

	while (*came < len) {
		ssize_t got = pread(uffd->fill->fd, buf + *came, len - *came,
				    (off_t)(pos + *came));

		if (!got)
			return -ENODATA;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0)
			*came += (size_t)got;
	}
	return 0;
}

/* Return: how many of @len bytes from @offset on the source must have: the last page
 * may end behind it. */
static size_t wanted_bytes(const struct uffd_job *uffd, uint64_t offset,
			   size_t len)
{
	size_t left = uffd->fill->len - offset;

	return len < left ? len : left;
}

/* Helpers use the caller's stack meanwhile. */
static int call_source(const struct ktask_uffd_ctl *fill, char *buf, size_t len,
		       uint64_t offset)
{
	unwinding_guard(forbidden) = true;
	int error = fill->source_func(buf, len, offset, fill->source_arg);

	forbidden = false;
	return error;
}

int uffd_source_read(const struct uffd_job *uffd, char *buf, size_t len,
		     uint64_t offset, size_t *came)
{
	const struct ktask_uffd_ctl *fill = uffd->fill;
	size_t wanted = wanted_bytes(uffd, offset, len);
	int error;

	*came = 0;
	if (fill->fd >= 0) {
		error = read_file(uffd, buf, wanted, offset, came);
	} else {
		error = call_source(fill, buf, wanted, offset);
		*came = error ? 0 : wanted;
	}
	if (error)
		return error;
	memset(buf + wanted, 0, len - wanted);
	*came = len;
	return 0;
}

static bool is_caller(const struct uffd_job *uffd)
{
	return pthread_equal(pthread_self(), uffd->caller);
}

static int ask_program(struct uffd_job *uffd)
{
	const struct ktask_opts *opts = uffd->job->opts;
	uint64_t now_ns = op_now_ns();

	if (!opts->progress_func || now_ns < uffd->report_ns)
		return 0;
	uffd->report_ns = now_ns + uffd->report_every_ns;
	return uffd_tell_progress(uffd, 1) ? -ECANCELED : 0;
}

static int check_stall(struct uffd_job *uffd, uint64_t since_ns)
{
	unsigned stall_ms = uffd->fill->stall_ms;
	int error = uffd->error;

	util_assert(is_caller(uffd));
	util_assert_held(&uffd->stream_lock.mutex);
	if (error)
		return error;
	if (op_is_late(uffd->job) ||
	    (stall_ms && op_now_ns() - since_ns >= stall_ms * NSEC_PER_MSEC))
		return -ETIMEDOUT;
	return ask_program(uffd);
}

/* Return: 0 once there is something to read, or an end. */
static int wait_for_stream(struct uffd_job *uffd)
{
	struct pollfd stream = { .fd = uffd->fill->fd, .events = POLLIN };
	uint64_t since_ns = op_now_ns();

	util_assert_held(&uffd->stream_lock.mutex);
	for (;;) {
		int ready = poll(&stream, 1, SLICE_MS);
		int error;

		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (!is_caller(uffd))
			return UFFD_STALLED;
		error = check_stall(uffd, since_ns);
		if (error)
			return error;
	}
}

static int read_stream(struct uffd_job *uffd, char *buf, size_t len,
		       size_t *came)
{
	while (*came < len) {
		int error = wait_for_stream(uffd);
		ssize_t got;

		if (error)
			return error;
		got = read(uffd->fill->fd, buf + *came, len - *came);
		if (!got)
			return -ENODATA;
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (got > 0)
			*came += (size_t)got;
	}
	return 0;
}

/* @len: whole pages. */
static int read_next(struct uffd_job *uffd, char *buf, size_t len, size_t *came)
{
	size_t wanted = wanted_bytes(uffd, uffd->stream_pos, len);
	int error;

	util_assert_held(&uffd->stream_lock.mutex);
	memcpy(buf, uffd->page, uffd->in_page);
	*came = uffd->in_page;
	error = read_stream(uffd, buf, wanted, came);
	if (!error) {
		memset(buf + wanted, 0, len - wanted);
		*came = len;
	}
	uffd->in_page = *came & (uffd->page_bytes - 1);
	*came -= uffd->in_page;
	memcpy(uffd->page, buf + *came, uffd->in_page);
	uffd->stream_pos += *came;
	return error;
}

int uffd_source_next(struct uffd_job *uffd, char *buf, size_t len,
		     uint64_t *offset, size_t *came)
{
	size_t left;
	int error;

	*came = 0;
	lent_lock_acquire(&uffd->stream_lock);
	*offset = uffd->stream_pos;
	left = uffd->job->len - uffd->stream_pos;
	error = uffd->error;
	if (!error && is_caller(uffd))
		error = ask_program(uffd);
	if (!error)
		error = read_next(uffd, buf, len < left ? len : left, came);
	if (error && error != UFFD_STALLED)
		uffd_fail(uffd, error);
	lent_lock_release(&uffd->stream_lock);
	return error;
}
