/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Undo: give the client back exactly the ranges that were done.
 */
#ifndef KTASK_CORE_UNDO_H
#define KTASK_CORE_UNDO_H

#include "core/job.h"

/*
 * kt_undo - call the job's undo function over what succeeded
 * @worker_at: the host's: the @index-th worker, 0 to @nr_workers - 1
 *
 * All workers must have returned from kt_job_work().  Undoes range by range, in ascending
 * order within a range.  Does nothing if the job has no undo function.
 */
void kt_undo(struct kt_job *job,
	     const struct kt_worker *(*worker_at)(void *host, unsigned index),
	     void *host, unsigned nr_workers);

/*
 * kt_undo_lowest - the failed worker with the lowest range and position
 *
 * Chunks are claimed in ascending order, and every claimed chunk is run.  So for work that
 * fails from some position on, this is where a serial loop would fail.
 *
 * Return: NULL if no chunk failed.
 */
const struct kt_worker *
kt_undo_lowest(const struct kt_worker *(*worker_at)(void *host, unsigned index),
	       void *host, unsigned nr_workers);

#endif /* KTASK_CORE_UNDO_H */
