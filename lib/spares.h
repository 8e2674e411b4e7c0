/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Spares: helpers that work in place of threads that are blocked in the kernel
 * inside a chunk.
 *
 * A job that is seen to block has a watcher, a helper of the pool that takes
 * no chunks.  It looks which of the job's threads are blocked and keeps as many
 * running as the job has places: for each that blocks a spare joins, and when
 * more run than there are places a spare leaves at its next chunk boundary.  So
 * spares need no permits or permits: there are never more of them than threads without use
 * for a CPU, but for a chunk's time.  How many pay at all is found by the job's
 * rate (core/depth.h); all bounds together are in spares_count.h.
 */
#ifndef KTASK_LIB_SPARES_H
#define KTASK_LIB_SPARES_H

#include "lib/job.h"

/* spares_begin - by the caller, before its first chunk: the watcher of a job
 * of which it was said that it blocks */
void spares_begin(struct user_job *job, uint64_t now_ns);

/*
 * spares_look - by the caller, now and then: does this job block?
 *
 * Then the watcher begins.  Jobs of fixed threads have none.
 */
void spares_look(struct user_job *job, uint64_t now_ns);

/* spares_wanted - do its threads block, and is there a CPU for others?  Any
 * thread that may look at job */
bool spares_wanted(const struct user_job *job);

/* spares_working - spares that have begun and not left; any thread */
unsigned spares_working(const struct user_job *job);

/* spares_alone - may the job use one CPU only?  Then spares leave. */
bool spares_alone(const struct user_job *job);

/* spares_place - where a spare that is submitted now shall run */
void spares_place(struct user_job *job, struct seat *seat);

/* spares_stop - by the caller, when nothing is left to claim: the watcher
 * leaves; the engine collects the spares */
void spares_stop(struct user_job *job);

void spares_release(struct user_job *job);

#endif /* KTASK_LIB_SPARES_H */
