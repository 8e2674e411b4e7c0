/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What waiting means in the chunks of a job that an operation begins, and how helpers are
 * waited for in the midst of a chunk.
 */
#ifndef KTASK_USER_JOB_WAITS_H
#define KTASK_USER_JOB_WAITS_H

#include <stdbool.h>

/*
 * job_expect_faults - about the next job that the calling thread begins
 *
 * @faults_only: a chunk that waits for a device has a major fault.  Other waits are for
 * locks of the kernel, and no compensating helper is made for them.
 *
 * Call it with false after the job: a small one does not take note.
 */
void job_expect_faults(bool faults_only);

/* job_return_loan - by a helper that another thread has raised: go back to the lowest
 * priority, unless the job's caller waits for the end of the chunk */
void job_return_loan(void);

/* job_was_raised - is the calling thread a helper that somebody has raised, other than the
 * job's caller?  Who lends to it may come too late, when it has just returned the loan. */
bool job_was_raised(void);

/* job_keep_raised - of all threads, until the next call: job_was_raised() says no if @keep.
 * To be called before helpers are raised that exec would wait for. */
void job_keep_raised(bool keep);

#endif /* KTASK_USER_JOB_WAITS_H */
