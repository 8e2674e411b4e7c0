/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The job: ranges of work, the workers that do it, and the first error.
 *
 * The host owns all memory.  It fills in a struct kt_job and its ranges, gives each
 * thread that works a struct kt_worker, and calls kt_job_work() in each.  When all have
 * returned, one thread may call kt_undo().  Nothing here blocks, except on the iterator
 * lock of a range.
 *
 * Locking: there is only the iterator lock.  Each field says who writes it:
 *
 *	I: set before the first thread works on the job, constant while one does
 *	C: the job's caller, between its chunks; others read it by kt_load()
 *	W: the worker's own thread; what others read is written by kt_store()
 *	A: any thread that works on the job, by kt_cas(), kt_add() and kt_store()
 *	L: whoever holds the range's iter_lock
 *
 * While one thread begins the job or undoes it, everything belongs to that thread.
 */
#ifndef KTASK_CORE_JOB_H
#define KTASK_CORE_JOB_H

#include "core/deps.h"
#include "core/split.h"

/* A range that belongs to a node; units are counted from its start. */
struct kt_range {
	void *start; /* I */
	uint64_t units; /* I */
	int node; /* KT_NO_NODE: any; I */
	uint32_t dealt; /* threads that were sent here; core/placement.h; C */

	/* Written by claims: the cursor alone on its cache line. */
	KT_CACHE_ALIGNED uint64_t next; /* first unit not claimed; A */
	void *iter_pos; /* its position; iterators only; L */
	kt_iter_lock_t iter_lock;

	/* Added up when a worker leaves the range; A */
	uint64_t chunks;
	uint64_t remote_chunks;
	uint32_t threads;
};

struct kt_chunk {
	void *start, *end; /* positions */
	uint64_t from, to; /* units of the range */
};

struct kt_job {
	/* I: */
	int (*func)(void *start, void *end, void *arg);
	void (*undo)(void *start, void *end, void *arg); /* or NULL */
	void *(*iter)(void *position, size_t size); /* NULL: addresses */
	void *arg;
	struct kt_split split;
	struct kt_range *ranges;
	unsigned nr_ranges;
	uint64_t deadline_ns; /* absolute; 0 none */

	/* Read by every claim, written seldom. */
	KT_CACHE_ALIGNED uint32_t threads; /* that work now: guides chunks; C */
	uint32_t error; /* the first, as its bit pattern; 0: not stopped; A */
	struct kt_cost cost; /* of the job so far, for workers that join; A */
};

/* The state of one thread in one job; the host keeps it until kt_undo() has returned.  W,
 * except ->tick. */
struct kt_worker {
	int node; /* where it runs; KT_NO_NODE unknown */
	unsigned range; /* index of the range it takes chunks from */
	struct kt_cost cost;
	uint64_t chunks, units; /* succeeded; units read by others too */
	uint64_t end_ns; /* when its last chunk ended */
	uint64_t largest_chunk; /* units, of those that succeeded */

	/* In the present range, not yet added to it. */
	uint64_t range_chunks;

	/* The chunk that failed; nothing is claimed after it. */
	bool failed;
	int error;
	void *fail_pos; /* set by the client in a chunk, else NULL */
	struct kt_chunk fail;

	/*
	 * Set by the host: called after each chunk that succeeded, with the
	 * time.  Returns true if this worker shall leave the job.  NULL: never.  I
	 */
	bool (*tick)(struct kt_worker *worker, uint64_t now_ns);
};

/*
 * kt_job_check - is this job well-formed?
 *
 * Return: 0, or -EINVAL: no function, minimum chunk 0, alignment not a power
 * of two, a range that runs past the end of the address space (addresses
 * only), or more than 2^64 - 1 units in all.
 */
int kt_job_check(const struct kt_job *job);

/* kt_job_begin - reset everything that a run changes; func etc. are set */
void kt_job_begin(struct kt_job *job);

/* kt_worker_begin_at - a worker on @node that begins with @range */
void kt_worker_begin_at(struct kt_worker *worker, const struct kt_job *job,
			int node, unsigned range);

/* kt_worker_begin - a worker on @node; @index spreads workers over ranges */
void kt_worker_begin(struct kt_worker *worker, const struct kt_job *job,
		     int node, unsigned index);

/*
 * kt_job_work - take chunks until none is left, the job stops, or tick says so
 *
 * May be called again with the same worker, unless it failed.
 */
void kt_job_work(struct kt_job *job, struct kt_worker *worker);

/* kt_job_stop - no more chunks; the first caller's @error is the job's */
void kt_job_stop(struct kt_job *job, int error);

static inline bool kt_job_stopped(const struct kt_job *job)
{
	/* Seen late, it costs one more chunk: no ordering is needed. */
	return kt_load(&job->error) != 0;
}

/* kt_job_idle - nothing left to claim (chunks may still run) */
bool kt_job_idle(const struct kt_job *job);

/* kt_job_units - units of all ranges */
uint64_t kt_job_units(const struct kt_job *job);

/*
 * kt_job_error - the job's error; 0 while it has none
 */
int kt_job_error(const struct kt_job *job);

#endif /* KTASK_CORE_JOB_H */
