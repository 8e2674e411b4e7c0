/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Spares: helpers that work in place of threads that are blocked in the kernel
 * inside a chunk.
 *
 * A job that is seen to block has a watcher, a helper of the pool that takes
 * no chunks.  It looks which of the job's threads are blocked and keeps as many
 * running as the job has places: for each that blocks a spare joins, and when
 * more run than there are places a spare leaves at its next chunk boundary.  So
 * spares need no slots: there are never more of them than threads without use
 * for a CPU, but for a chunk's time.  How many pay at all is found by the job's
 * rate (core/depth.h); all bounds together are in spares_count.h.
 */
#ifndef KTASK_LIB_SPARES_H
#define KTASK_LIB_SPARES_H

#include "lib/run.h"

/* spares_begin - by the caller, before its first chunk: the watcher of a job
 * of which it was said that it blocks */
void spares_begin(struct run *run, uint64_t now_ns);

/*
 * spares_look - by the caller, now and then: does this job block?
 *
 * Then the watcher begins.  Jobs of fixed threads have none.
 */
void spares_look(struct run *run, uint64_t now_ns);

/* spares_units - done by spares; any thread */
uint64_t spares_units(const struct run *run);

/* spares_wanted - do its threads block, and is there a CPU for others?  Any
 * thread that may look at run */
bool spares_wanted(const struct run *run);

/* spares_working - spares that have begun and not left; any thread */
unsigned spares_working(const struct run *run);

/* spares_settled - is no spare in a chunk?  Any thread that may look at run */
bool spares_settled(const struct run *run);

/*
 * spares_end - by the caller, when nothing is left to claim: they leave
 *
 * What they did is added to the run; their workers stay for undo.
 */
void spares_end(struct run *run);

/* spares_nr, spares_worker_at - their workers, for undo */
unsigned spares_nr(const struct run *run);
const struct kt_worker *spares_worker_at(const struct run *run, unsigned index);

void spares_release(struct run *run);

#endif /* KTASK_LIB_SPARES_H */
