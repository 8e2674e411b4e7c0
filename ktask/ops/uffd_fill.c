/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * uffd-fill: make the pages of a range that is registered with a userfaultfd.
 *
 * The job is over the bytes of the range.  Each thread copies block by block.  Before
 * each block the caller serves the faults that are pending, so that a fault waits for
 * one block at most.  For some milliseconds after a fault blocks are short.  A thread that
 * has used up the CPU budget sleeps, but wakes up for faults.
 *
 * Owns the loop, the budget and the arguments.  uffd_source.c owns the contents,
 * uffd_pages.c the userfaultfd.
 *
 * Behaves badly if the source blocks (a cold disk).  Faults then wait until a helper
 * finds that the caller has not served faults for 0.2 ms.  If all threads block in the
 * source, faults wait for the source.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "uffd_job.h"
#include "common/struct_size.h"
#include "util/clock.h"

/* Bytes copied between two polls for faults: some 30 us, for which a fault may wait. */
#define BLOCK_BYTES (64 * KIB)
/* After a fault blocks are shorter for SHORT_BLOCKS_NS, because others follow.  That costs
 * an eighth more CPU time.  If the host of a virtual machine has to provide memory, one
 * page may take as long as a whole block does otherwise. */
#define SHORT_BLOCK_BYTES (16 * KIB)
#define SHORT_BLOCKS_NS 5000000ull

/* How far the threads may be ahead of the budget, and the longest sleep. */
#define AHEAD_NS 1000000ull
#define SLEEP_MAX_NS 20000000ull

/* The caller serves faults at least this often, unless something blocks it. */
#define ATTENDS_NS 200000ull

#define NSEC_PER_MSEC 1000000ull
#define DEFAULT_PROGRESS_MS 100

/* Return: how long to sleep until the CPU time is within the budget; 0: it is. */
static uint64_t sleep_needed_ns(const struct uffd_job *uffd)
{
	unsigned percent = uffd->fill->cpu_percent;
	uint64_t passed_ns = op_now_ns() - uffd->begin_ns + AHEAD_NS, due_ns;

	due_ns = uffd->spent_ns / percent * 100;
	if (due_ns <= passed_ns)
		return 0;
	due_ns -= passed_ns;
	return due_ns < SLEEP_MAX_NS ? due_ns : SLEEP_MAX_NS;
}

static bool must_end(const struct uffd_job *uffd)
{
	return uffd->error || op_is_late(uffd->job);
}

/*
 * May the calling thread serve faults?  If so it will serve for the next @ns.
 *
 * The caller serves, because it has the program's priority: a helper might read a message
 * and then get no CPU.  Helpers serve only if the caller does not, because it waits for
 * the source or for helpers.
 */
static bool may_serve(struct uffd_job *uffd, uint64_t ns)
{
	uint64_t now_ns = op_now_ns();

	if (!pthread_equal(pthread_self(), uffd->caller))
		return now_ns >= uffd->attended_ns;
	uffd->attended_ns = now_ns + ns + ATTENDS_NS;
	return true;
}

static int poll_faults(struct uffd_job *uffd, const struct files_buffer *buffer,
		       uint64_t *failed)
{
	return may_serve(uffd, 0) ? uffd_serve(uffd, buffer, failed) : 0;
}

static int sleep_and_serve(struct uffd_job *uffd,
			   const struct files_buffer *buffer, uint64_t ns,
			   uint64_t *failed)
{
	struct pollfd waits = { .fd = may_serve(uffd, ns) ? uffd->fill->uffd
							  : -1,
				.events = POLLIN };
	struct timespec pause = { .tv_nsec = (long)ns };

	return ppoll(&waits, 1, &pause, NULL) > 0
		       ? uffd_serve(uffd, buffer, failed)
		       : 0;
}

/* Faults are served meanwhile, whatever the budget. */
static int keep_budget(struct uffd_job *uffd, const struct files_buffer *buffer,
		       uint64_t *cpu_ns, uint64_t *failed)
{
	int error = 0;

	while (!error && !must_end(uffd)) {
		uint64_t now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), sleep_ns;

		uffd->spent_ns += now_ns - *cpu_ns;
		*cpu_ns = now_ns;
		sleep_ns = sleep_needed_ns(uffd);
		if (!sleep_ns)
			break;
		error = sleep_and_serve(uffd, buffer, sleep_ns, failed);
	}
	return error;
}

static int fill_block(struct uffd_job *uffd, const struct files_buffer *buffer,
		      uint64_t offset, size_t len, uint64_t *failed)
{
	size_t came;
	int error, wrong;

	if (uffd->fill->flags & KTASK_UFFD_STREAM)
		error = uffd_source_next(uffd, buffer->at, len, &offset, &came);
	else
		error = uffd_source_read(uffd, buffer->at, len, offset, &came);
	/* The last page of a file that ends in it is not whole. */
	came &= ~(uffd->page_bytes - 1);
	*failed = offset + came;
	wrong = uffd_copy(uffd, buffer->at, offset, came, failed);
	return wrong ? wrong : error;
}

/* The engine counts whole chunks, but a stream may have ended within one. */
static int tell_of_stream(const struct ktask_progress *progress, void *arg)
{
	return uffd_tell_progress(arg, progress->threads);
}

/* What one chunk copies; from a stream as many bytes as come. */
struct fill_chunk {
	struct uffd_job *uffd;
	uint64_t start;
	uint64_t end;
	uint64_t failed;
};

static size_t least_bytes(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

static size_t block_bytes(const struct uffd_job *uffd)
{
	uint64_t faulted_ns = uffd->faulted_ns;

	return faulted_ns && op_now_ns() - faulted_ns < SHORT_BLOCKS_NS
		       ? SHORT_BLOCK_BYTES
		       : BLOCK_BYTES;
}

static int fill_by_blocks(const struct files_buffer *buffer, void *arg)
{
	struct fill_chunk *chunk = arg;
	struct uffd_job *uffd = chunk->uffd;
	uint64_t cpu_ns =
		uffd->fill->cpu_percent ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	uint64_t pos = chunk->start;
	size_t len = 0;
	int error = 0;

	for (; pos < chunk->end && !error; pos += len) {
		chunk->failed = pos;
		error = poll_faults(uffd, buffer, &chunk->failed);
		if (!error && uffd->fill->cpu_percent)
			error = keep_budget(uffd, buffer, &cpu_ns,
					    &chunk->failed);
		/* The engine checks the deadline between chunks only. */
		if (!error && op_is_late(uffd->job))
			error = -ETIMEDOUT;
		len = least_bytes(block_bytes(uffd), buffer->len,
				  chunk->end - pos);
		if (!error)
			error = fill_block(uffd, buffer, pos, len,
					   &chunk->failed);
	}
	/* A helper leaves a stream that stalls to the caller: finish_stream().  Without
	 * a stream this is a code of the program's source. */
	return error == UFFD_STALLED && uffd->fill->flags & KTASK_UFFD_STREAM
		       ? 0
		       : error;
}

static int fill_chunk(void *start, void *end, void *arg)
{
	const struct op_job *job = arg;
	struct uffd_job *uffd = job->state;
	struct fill_chunk chunk = {
		.uffd = uffd,
		.start = (uintptr_t)start,
		.end = (uintptr_t)end,
	};
	int error = files_with_buffer(&uffd->buffers, fill_by_blocks, &chunk);

	if (!error)
		return 0;
	op_fail_at(job, (uintptr_t)chunk.failed);
	return uffd_fail(uffd, error);
}

/* min_chunk: a tenth of a millisecond of copying. */
static const struct ktask_op op_uffd_fill = {
	.name = "uffd-fill",
	.min_chunk = 256 * KIB,
	.makes_pages = true,
};

/* The caller reads what helpers have left of the stream. */
static int finish_stream(struct uffd_job *uffd, struct op_job *job)
{
	struct fill_chunk chunk = { .uffd = uffd, .end = job->len };
	int error;

	chunk.start = uffd->stream_pos;
	if (chunk.start == chunk.end)
		return 0;
	error = files_with_buffer(&uffd->buffers, fill_by_blocks, &chunk);
	return error ? op_fail(job, error, (void *)(uintptr_t)chunk.failed) : 0;
}

static int run_job(struct uffd_job *uffd, struct op_job *job)
{
	bool streams = uffd->fill->flags & KTASK_UFFD_STREAM;
	int error;

	files_buffers_begin(&uffd->buffers);
	uffd->buffers.kept = !op_is_small(job);
	if (uffd->buffers.kept)
		files_buffers_map(&uffd->buffers);
	lent_lock_init(&uffd->stream_lock);
	error = op_run_job(job, fill_chunk);
	if (!error && streams)
		error = finish_stream(uffd, job);
	if (streams && job->result)
		job->result->units = uffd->stream_pos;
	lent_lock_destroy(&uffd->stream_lock);
	files_buffers_end(&uffd->buffers);
	return error;
}

/* More threads would only wake up to find the budget used up, and use it by that. */
static void limit_threads(const struct uffd_job *uffd, struct ktask_opts *opts)
{
	unsigned percent = uffd->fill->cpu_percent;
	unsigned enough = percent / 100 + !!(percent % 100);

	if (percent && (!opts->max_threads || opts->max_threads > enough))
		opts->max_threads = enough;
}

static int run_fill(struct uffd_job *uffd, struct ktask_opts *opts)
{
	unsigned every_ms = opts->progress_ms;
	struct op_watch watch = { 0 };
	struct op_job job = {
		.op = &op_uffd_fill,
		/* Positions are offsets. */
		.len = (uffd->fill->len + uffd->page_bytes - 1) &
		       ~(uffd->page_bytes - 1),
		.min_chunk = op_uffd_fill.min_chunk,
		.align = uffd->page_bytes,
		.opts = opts,
		.watch = &watch,
		.result = opts->result,
		.state = uffd,
	};
	int error;

	limit_threads(uffd, opts);
	op_begin(&job);
	uffd->job = &job;
	uffd->caller = pthread_self();
	uffd->begin_ns = op_now_ns();
	uffd->report_every_ns =
		(every_ms ? every_ms : DEFAULT_PROGRESS_MS) * NSEC_PER_MSEC;
	if (!(uffd->fill->flags & KTASK_UFFD_STREAM))
		return run_job(uffd, &job);
	if (opts->progress_func) {
		opts->progress_func = tell_of_stream;
		opts->progress_arg = uffd;
	}
	uffd->page = malloc(uffd->page_bytes);
	error = uffd->page ? run_job(uffd, &job) : -ENOMEM;
	free(uffd->page);
	return error;
}

static int check_uffd(int uffd)
{
	int flags = fcntl(uffd, F_GETFL);

	if (flags < 0)
		return -errno;
	/* Otherwise a read without a pending fault would block. */
	return flags & O_NONBLOCK ? 0 : -EINVAL;
}

static int check_fill(const struct ktask_uffd_ctl *fill)
{
	size_t page = op_page_bytes();
	bool streams = fill->flags & KTASK_UFFD_STREAM;

	for (unsigned i = 0; i < 4; i++)
		if (fill->reserved[i])
			return -EINVAL;
	if (fill->flags & ~KTASK_UFFD_STREAM || fill->padding)
		return -EINVAL;
	if (!fill->addr || (uintptr_t)fill->addr & (page - 1))
		return -EINVAL;
	if (fill->len > SIZE_MAX - page - (uintptr_t)fill->addr)
		return -EINVAL;
	/* Exactly one source; only a file has an offset. */
	if ((fill->fd >= 0) == !!fill->source_func ||
	    (streams && fill->fd < 0) ||
	    (fill->offset && (streams || fill->fd < 0)))
		return -EINVAL;
	return check_uffd(fill->uffd);
}

static int fill_checked(const struct ktask_uffd_ctl *fill,
			const struct ktask_opts *given)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct uffd_job uffd = {
		.fill = fill,
		.page_bytes = op_page_bytes(),
		.program = given,
	};
	struct ktask_opts opts = *given;
	int cancel_state, error = 0;

	opts.result = &result;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (fill->len)
		error = run_fill(&uffd, &opts);
	pthread_setcancelstate(cancel_state, NULL);
	if (given->result)
		struct_size_write(given->result, &result, sizeof(result));
	return error;
}

int ktask_uffd_fill(const struct ktask_uffd_ctl *fill,
		    const struct ktask_opts *opts)
{
	static const struct ktask_opts defaults = KTASK_OPTS_INIT;
	struct ktask_uffd_ctl own;
	struct ktask_opts own_opts;
	int saved_errno = errno;
	int error;

	if (!fill)
		return -EINVAL;
	error = struct_size_read(
		&own, sizeof(own), fill,
		STRUCT_SIZE_TO(struct ktask_uffd_ctl, source_arg));
	if (!error)
		error = struct_size_read(&own_opts, sizeof(own_opts),
					 opts ? opts : &defaults,
					 STRUCT_SIZE_ONLY);
	if (!error)
		error = op_check_opts(&own_opts);
	if (!error)
		error = check_fill(&own);
	if (!error)
		error = fill_checked(&own, &own_opts);
	errno = saved_errno;
	return error;
}
