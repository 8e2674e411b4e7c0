/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * lock: populate in parallel, then one mlock(2) over the whole range.
 *
 * mlock() decides whether the limit allows the call and whether it succeeds, so its errors
 * are those of the plain call.  The parallel part only saves it work.
 *
 * The range is first locked on fault.  That is cheap on untouched memory, and finds
 * holes and a low RLIMIT_MEMLOCK before a page is made.  It also lets the threads
 * account their pages as locked while they make them.  1 GiB of 4 KiB pages, one thread,
 * Linux 6.18: plain mlock 318 ms; populate 322 and mlock 95; lock on fault 0.01,
 * populate 320 and mlock 41.  Only the walk of that last mlock is not parallel.
 *
 * Behaves badly with 4 KiB pages and many threads, because of that walk, and with ranges
 * of very many mappings, which are listed.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "advise.h"
#include "device_job.h"
#include "mapping.h"

/* Adjacent mappings that are treated alike. */
struct piece {
	uintptr_t start;
	uintptr_t end;
	int advice;
	bool locked; /* before the job */
	bool ends_early; /* a file may, or access is not permitted */
};

struct pieces {
	const struct op_job *job;
	struct piece *at;
	size_t nr;
	size_t capacity;
};

/*
 * The calls bypass the C library: the preload shim replaces these functions, and under
 * sanitizers they do nothing.
 */
static int lock_whole(const struct op_job *job)
{
	return syscall(SYS_mlock, job->addr, job->len) ? -errno : 0;
}

static int lock_on_fault(const struct op_job *job)
{
	return syscall(SYS_mlock2, job->addr, job->len, MLOCK_ONFAULT) ? -errno
								       : 0;
}

/* As mlock() faults: copies are made now, shared pages are not dirtied. */
static int advice_of(const struct op_job *job, const struct mapping *mapping)
{
	if (job->flags & KTASK_POPULATE_READ)
		return MADV_POPULATE_READ;
	return mapping->writable && !mapping->shared ? MADV_POPULATE_WRITE
						     : MADV_POPULATE_READ;
}

static int add_piece(const struct mapping *mapping, void *arg)
{
	struct pieces *pieces = arg;
	struct piece *last = pieces->nr ? &pieces->at[pieces->nr - 1] : NULL;
	struct piece piece = {
		.start = mapping->start,
		.end = mapping->end,
		.advice = advice_of(pieces->job, mapping),
		.locked = mapping->locked,
		.ends_early = mapping->file || !mapping->readable,
	};

	if (last && last->end == piece.start && last->advice == piece.advice &&
	    last->locked == piece.locked && !last->ends_early &&
	    !piece.ends_early) {
		last->end = piece.end;
		return 0;
	}
	if (pieces->nr == pieces->capacity) {
		size_t capacity = pieces->capacity ? 2 * pieces->capacity : 8;
		struct piece *at = realloc(pieces->at, capacity * sizeof(*at));

		if (!at)
			return -ENOMEM;
		pieces->at = at;
		pieces->capacity = capacity;
	}
	pieces->at[pieces->nr++] = piece;
	return 0;
}

static int list_pieces(struct pieces *pieces)
{
	const struct op_job *job = pieces->job;
	uintptr_t start = (uintptr_t)job->addr;
	unsigned want = 0;

	if (op_may_be_cancelled(job) && mapping_any_locked())
		want = MAPPING_LOCKED;
	return mapping_each(start, start + job->len, want, add_piece, pieces);
}

/* The first position that is not mapped; the end of the job if none. */
static uintptr_t first_hole(const struct pieces *pieces)
{
	uintptr_t pos = (uintptr_t)pieces->job->addr;
	uintptr_t end = pos + pieces->job->len;

	for (size_t i = 0; i < pieces->nr && pieces->at[i].start <= pos; i++)
		pos = pieces->at[i].end;
	return pos < end ? pos : end;
}

/* The part of a piece that is in [*start, *end); false if there is none. */
static bool clip_piece(const struct piece *piece, uintptr_t *start,
		       uintptr_t *end)
{
	if (*start < piece->start)
		*start = piece->start;
	if (*end > piece->end)
		*end = piece->end;
	return *start < *end;
}

/* Not accessible, or device memory, which mlock() skips: EINVAL. */
static int lock_chunk(void *start, void *end, void *arg)
{
	struct op_job *job = arg;
	const struct pieces *pieces = job->state;
	uintptr_t first = (uintptr_t)start, last = (uintptr_t)end;
	int error = 0;

	for (size_t i = 0; i < pieces->nr && !error; i++) {
		const struct piece *piece = &pieces->at[i];
		uintptr_t from = first, to = last;

		if (clip_piece(piece, &from, &to))
			error = advise_chunk(job, from, to, piece->advice,
					     -EINVAL);
	}
	return error;
}

/* A small range: nothing can be saved. */
static int plain_chunk(void *start, void *end, void *arg)
{
	return lock_whole(arg);
}

/*
 * Unlock after the job was cancelled.  Pieces that were locked before the call stay
 * locked.  If they were not locked on fault, all their pages were present and still are.
 */
static void unlock_pieces(const struct pieces *pieces)
{
	uintptr_t first = (uintptr_t)pieces->job->addr;
	uintptr_t last = first + pieces->job->len;

	for (size_t i = 0; i < pieces->nr; i++) {
		const struct piece *piece = &pieces->at[i];
		uintptr_t from = first, to = last;

		if (!piece->locked && clip_piece(piece, &from, &to))
			syscall(SYS_munlock, from, to - from);
	}
}

/* The lowest position that is known to have failed. */
static const void *fail_pos(const struct op_job *job)
{
	const char *pos = job->result ? job->result->fail_pos : NULL;
	const char *suspect = (const char *)op_suspect(job);

	if (suspect && (!pos || suspect < pos))
		pos = suspect;
	return pos ? pos : job->addr;
}

static int lock_at_last(struct op_job *job)
{
	uint64_t wall_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int error = lock_whole(job);

	if (error)
		return op_fail(job, error, fail_pos(job));
	/* mlock() may do what a chunk could not. */
	op_succeed(job);
	if (!job->result)
		return 0;
	job->result->wall_ns += clock_ns(CLOCK_MONOTONIC) - wall_ns;
	job->result->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	return 0;
}

/*
 * Run the pieces one after another, up to the first at which mlock() might stop; mlock()
 * itself does the rest.  With a deadline all pieces are one job.
 */
static int run_by_pieces(struct op_job *job, const struct pieces *pieces)
{
	uintptr_t first = (uintptr_t)job->addr, last = first + job->len;
	struct device_job device;
	int error = 0;

	if (op_may_be_cancelled(job))
		return op_run_part(job, first, last, lock_chunk);
	device_job_begin(&device, job);
	for (size_t i = 0; i < pieces->nr && !error && !op_suspect(job); i++) {
		const struct piece *piece = &pieces->at[i];
		uintptr_t from = first, to = last;

		if (clip_piece(piece, &from, &to))
			error = device_job_run_part(
				job, from, to, lock_chunk,
				piece->advice == MADV_POPULATE_WRITE);
	}
	device_job_end(&device, job);
	return error;
}

static int lock_pieces(struct op_job *job, const struct pieces *pieces)
{
	uintptr_t end = (uintptr_t)job->addr + job->len;
	uintptr_t hole = first_hole(pieces);
	int error;

	if (hole < end)
		op_note_suspect(job, hole);
	/* mlock() fails for the same reason, and populates nothing. */
	if (lock_on_fault(job))
		return lock_at_last(job);
	error = run_by_pieces(job, pieces);
	if (error == -ETIMEDOUT || error == -ECANCELED) {
		unlock_pieces(pieces);
		return error;
	}
	return lock_at_last(job);
}

static int lock_around(struct op_job *job)
{
	struct pieces pieces = { .job = job };
	int error;

	/* A job that is stopped after the call would leave the range locked. */
	if (op_is_small(job) && !op_may_be_cancelled(job)) {
		if (!op_run_whole(job, plain_chunk))
			return 0;
		/* The steps below find out where it failed. */
		if (job->result)
			job->result->fail_pos = NULL;
	}
	error = list_pieces(&pieces);
	job->state = &pieces;
	if (error)
		error = lock_at_last(job);
	else
		error = lock_pieces(job, &pieces);
	free(pieces.at);
	return error;
}

/*
 * min_chunk    32K   64K  128K  256K  512K    1M    2M    4M    8M   16M
 * 1 thread      31    52    93   174   337   663  1313  2652  5285 10725
 * 2 threads     40    60    88   143   253   460   771  1533  3166  6357
 *
 * 4 KiB pages.  Plain mlock() takes 75 us for two chunks of 128 KiB, 2662 for
 * two of 4 MiB.
 */
const struct ktask_op op_lock = {
	.name = "lock",
	.summary = "populate in parallel, then lock with one mlock()",
	.min_chunk = 256 * KIB,
	.known_flags = KTASK_POPULATE_READ,
	.makes_pages = true,
	.in_kernel = true,
	.align = mapping_align_range,
	.chunk = lock_chunk,
	.around = lock_around,
};
