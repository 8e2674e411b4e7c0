/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How many spares a job shall have: arithmetic on what its watcher sees at each
 * look, without a thread or a system call.
 *
 * The least of three counts: spares that pay, by the job's rate (core/depth.h);
 * none where others use the CPUs; and as many as threads of it are blocked.
 */
#ifndef KTASK_LIB_SPARES_COUNT_H
#define KTASK_LIB_SPARES_COUNT_H

#include "core/depth.h"
#include "lib/sight.h"

struct spares_count {
	struct kt_depth depth; /* threads that pay, spares among them */
	unsigned need; /* as many as are blocked, as seen lately */
	unsigned extra; /* as at the last look */
	/* Averages over some looks, in parts of one: */
	int crowd; /* CPUs that others use, */
	int busy; /* the job's threads that run, */
	int held_back; /* and looks at which not all that pay could be had */
	bool little; /* it uses less than one CPU */
};

/* What is seen at one look. */
struct spares_look {
	uint64_t now_ns;
	uint64_t units; /* that the job has done */
	uint64_t chunk; /* units of a chunk, about */
	struct sight sight; /* threads that are in the job */
	unsigned
		extra; /* that stand: as many more join, whether it pays or not */
	unsigned threads; /* its places */
	unsigned max; /* spares that client and administrator allow */
	unsigned cpus; /* of the machine */
	unsigned runnable; /* its threads that run or could */
	bool idle_only; /* spares would push others aside */
	bool alone; /* it may use one CPU only */
};

/* spares_count_begin - of a job of which nothing was seen; its depth is begun */
void spares_count_begin(struct spares_count *count);

/* spares_count - at a look: how many there shall be; by the watcher alone */
unsigned spares_count(struct spares_count *count,
		      const struct spares_look *look);

#endif /* KTASK_LIB_SPARES_COUNT_H */
