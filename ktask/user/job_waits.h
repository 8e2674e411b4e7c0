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

/*
 * job_return_loan - by a thread that others no longer wait for: if one of them has raised it,
 * go back to the lowest priority, unless the job's caller waits for the end of the chunk
 *
 * @noted: a loan to this thread is noted.  Without that a helper finds out whether it was
 * raised: who lends to it may come too late, when it has just returned a loan.
 */
void job_return_loan(bool noted);

/* job_keep_raised - of all threads, until the next call: no loan is returned but noted ones
 * if @keep.  To be called before helpers are raised that exec would wait for. */
void job_keep_raised(bool keep);

#endif /* KTASK_USER_JOB_WAITS_H */
