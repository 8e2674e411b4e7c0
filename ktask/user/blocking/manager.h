/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The concurrency manager: compensating helpers for threads that block.
 *
 * A compensating helper takes chunks in place of a thread that is blocked in the kernel
 * inside a chunk.  A job that is seen to block has a manager: a helper of the pool that
 * takes no chunks.  The manager samples which threads of the job are blocked, and keeps as
 * many running as the job's target concurrency.  For each thread that blocks, a
 * compensating helper joins.  When more threads run than the target, compensating helpers
 * leave after their chunk.
 *
 * They need no permits: except for the time of one chunk, there are never more of them
 * than blocked threads.  The job's rate decides how many of them pay
 * (core/io_concurrency.h).  manager_count.h lists all bounds.
 */
#ifndef KTASK_USER_MANAGER_H
#define KTASK_USER_MANAGER_H

#include "user/user_job.h"

/* manager_begin - start the manager of a job that is said to block; by the
 * caller, before its first chunk */
void manager_begin(struct user_job *job, uint64_t now_ns);

/*
 * manager_refresh - start the manager if the job is seen to block
 *
 * By the caller, at its ticks.  If there is a manager already, tell it which CPUs the job
 * has now.  Jobs with a fixed number of threads have no manager.
 */
void manager_refresh(struct user_job *job, uint64_t now_ns);

/* manager_wants_helpers - do threads of the job block, and are there CPUs for
 * others?  Any thread that may read the job */
bool manager_wants_helpers(const struct user_job *job);

/* manager_nr_helpers - compensating helpers that have begun and not left; any thread */
unsigned manager_nr_helpers(const struct user_job *job);

/* manager_has_one_cpu - may the job use one CPU only?  Then they leave. */
bool manager_has_one_cpu(const struct user_job *job);

/* manager_place_helper - where one that is submitted now shall run */
void manager_place_helper(struct user_job *job, struct pool_item *pool_item);

/* manager_stop - by the caller, when nothing is left to claim: the manager
 * leaves; the engine collects the compensating helpers */
void manager_stop(struct user_job *job);

void manager_release(struct user_job *job);

#endif /* KTASK_USER_MANAGER_H */
