/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What an operation is, and what one call of it carries.
 *
 * To add an operation: write ops/NAME.c ending in one const descriptor, add
 * that to the table in op.c, and give it a public function in ktask/ops.h.
 * This header owns the descriptor and the job; what an operation does with
 * memory is its own file's business.
 */
#ifndef OPS_OP_H
#define OPS_OP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>

#include <ktask/ops.h>

#include "policy.h"
#include "util/clock.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

struct device_job;

/** What the jobs of one call share; read and written by its caller alone. */
struct op_watch {
	uint64_t begin_ns; /* with a deadline or a progress function */
	bool stop; /* the progress function wants no more */
};

/**
 * struct op_job - one call of an operation, on the stack of its caller
 *
 * Locking: there is no lock.  While chunks run it is only read, except @suspect, which
 * is atomic and of any thread.
 */
struct op_job {
	const struct ktask_op *op;
	char *addr;
	size_t len; /* bytes; a multiple of the operation's unit */
	unsigned flags;
	const char *src;
	size_t src_len;
	struct ktask_file *files; /* op_file() */
	size_t file_bytes; /* of each, as the program has them */
	size_t nr_files;
	const struct ktask_opts *opts; /* never NULL */
	struct op_watch *watch;
	struct ktask_result *result; /* may be NULL */
	size_t min_chunk; /* the operation's, or more; bytes */
	size_t align; /* chunk edges fall on multiples of it */
	size_t step_bytes; /* smallest page that the range may have */
	void *state; /* the operation's own, set by its around() */
	struct device_job *device; /* device_job.h; NULL: not asked for */
	bool running; /* between the beginning and the end of op_run_job() */
	ktask_thread_func work; /* what op_run_job() was given */
	pthread_t caller; /* whose policy helpers follow */
	struct policy policy;
	_Atomic uintptr_t suspect; /* op_note_suspect(); 0: none */
};

/**
 * struct ktask_op - an operation
 *
 * @unit: what addr and len are multiples of; 0 means a page, and len is then
 *	rounded up
 * @min_chunk: bytes; measured, see each operation.  The method: the pool is
 *	warm and rests for 0.3 ms, then the operation runs over two chunks,
 *	with one thread and with two by turns; lower quartile of 41 times
 *	(above 8 MiB 15, above 64 MiB 9), microseconds.  2 vCPUs of an AMD
 *	EPYC, Linux 6.18.  A guest that gives free pages back to its host
 *	shows times five times as long now and then: those are the host's
 * @known_flags: any other is -EINVAL
 * @align: sets job->align and job->step_bytes before the job, and may raise
 *	job->min_chunk where this memory is cheaper than most
 * @validate: what is wrong with these arguments beyond the common checks;
 *	NULL: nothing can be
 * @chunk: a ktask_thread_func whose argument is the struct op_job
 * @makes_pages: helpers follow the caller's memory policy
 * @faults_only: a chunk that waits for a device has a major fault; other waits are for
 *	locks of the kernel, which more threads would only wait for too
 * @on_files: files instead of a range of memory
 * @in_kernel: /dev/ktask can do it as well: see device_job.h
 * @around: steps before and after the parallel part, which it starts by
 *	op_run_job(); NULL: there are none
 */
struct ktask_op {
	const char *name;
	const char *summary;
	size_t unit;
	size_t min_chunk;
	unsigned known_flags;
	bool makes_pages;
	bool faults_only;
	bool on_files;
	bool in_kernel;
	void (*align)(struct op_job *job);
	int (*validate)(const struct ktask_op_args *args);
	ktask_thread_func chunk;
	int (*around)(struct op_job *job);
};

/* The operations, one file each. */
extern const struct ktask_op op_populate;
extern const struct ktask_op op_fill;
extern const struct ktask_op op_discard;
extern const struct ktask_op op_lock;
extern const struct ktask_op op_unmap;
extern const struct ktask_op op_unlock;
extern const struct ktask_op op_warm;

static inline struct ktask_file *op_file(const struct op_job *job, size_t index)
{
	return (void *)((char *)job->files + index * job->file_bytes);
}

/** op_begin - before the first of the jobs: from here on a deadline counts */
void op_begin(struct op_job *job);

/**
 * op_run_job - do the parallel part of @job with @chunk, and wait for it
 *
 * Return: as ktask_run().
 */
int op_run_job(struct op_job *job, ktask_thread_func chunk);

/**
 * op_start_job - begin the parallel part of @job, and return
 * @job: must live, and stay where it is, until op_wait_job() has returned
 * @started: set to what op_wait_job() wants; NULL on failure
 *
 * Return: as ktask_start().
 */
int op_start_job(struct op_job *job, ktask_thread_func chunk,
		 struct ktask_job **started);

/** op_wait_job - ktask_wait() for what op_start_job() began */
int op_wait_job(struct op_job *job, struct ktask_job *started);

/** op_check_opts - of the size that is known here; 0, -EINVAL, -E2BIG */
int op_check_opts(const struct ktask_opts *opts);

/** op_is_late - is the deadline of the call over?  For work without chunks. */
bool op_is_late(const struct op_job *job);

/** op_run_whole - the caller does all of the job, as one chunk */
int op_run_whole(struct op_job *job, ktask_thread_func chunk);

/**
 * op_run_part - op_run_job() on [start, end) of @job
 *
 * An operation that makes pages makes one before the others (mapping_first_page()).  The
 * results of all parts add up in that of @job.
 */
int op_run_part(struct op_job *job, uintptr_t start, uintptr_t end,
		ktask_thread_func chunk);

/** op_add_result - of a part that was a job of its own */
void op_add_result(struct op_job *job, const struct ktask_result *part);

/** op_is_small - the engine would not split this job */
bool op_is_small(const struct op_job *job);

/**
 * op_fail - let the result say that the job failed outside its chunks
 * @pos: first byte that failed; NULL: none did
 *
 * Return: @error
 */
int op_fail(struct op_job *job, int error, const void *pos);

/** op_succeed - let the result say that all was done, whatever its chunks met */
void op_succeed(struct op_job *job);

/**
 * op_fail_at - ktask_fail_at(), in chunks of this job only
 *
 * The operation may run in a chunk of an outer job.  A chunk function that is called
 * before the job begins must not set where the outer job has failed.
 */
void op_fail_at(const struct op_job *job, uintptr_t pos);

/**
 * op_note_suspect - a chunk could not do @pos, and went on
 *
 * For calls that go on past what they cannot do and report it in the end, as madvise(2)
 * does with unmapped memory.  The lowest position is kept.
 */
void op_note_suspect(struct op_job *job, uintptr_t pos);

/** op_suspect - the position that was noted, 0 for none */
uintptr_t op_suspect(const struct op_job *job);

/** op_may_be_cancelled - the caller gave a deadline or a progress function */
bool op_may_be_cancelled(const struct op_job *job);

size_t op_page_bytes(void);

static inline uint64_t op_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif /* OPS_OP_H */
