/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How many compensating helpers a job shall have: arithmetic on the manager's
 * samples, without a thread or a system call.
 *
 * The least of three counts: those that pay, by the job's rate (core/io_concurrency.h);
 * none where others use the CPUs; and as many as threads of the job are blocked.
 */
#ifndef KTASK_USER_MANAGER_COUNT_H
#define KTASK_USER_MANAGER_COUNT_H

#include "core/io_concurrency.h"
#include "user/blocking/thread_sample.h"

struct manager_count {
	struct kt_io io; /* threads that pay, compensating helpers among them */
	unsigned need; /* as many as are blocked, by the last samples */
	unsigned extra; /* of the last sample */
	/* Averages over some samples, fixed point: */
	int others; /* CPUs that others use */
	int busy; /* threads of the job that run */
	int held_back; /* samples at which not all that pay could be had */
	bool little; /* the job uses less than one CPU */
};

/* What the manager sees at one time. */
struct manager_sample {
	uint64_t now_ns;
	uint64_t units; /* that the job has done */
	uint64_t chunk; /* units of a chunk, about */
	struct thread_sample seen; /* threads that are in the job */
	unsigned extra; /* stalled ones: as many join, whether it pays or not */
	unsigned threads; /* the target concurrency of the job */
	unsigned max; /* that client and administrator allow */
	unsigned cpus; /* of the machine, or those that the job may use */
	unsigned runnable; /* threads that run there or could */
	bool idle_only; /* helpers must be kept to idle CPUs */
	bool has_one_cpu; /* the job may use one CPU only */
};

/* manager_count_begin - no sample yet; count->io is begun already */
void manager_count_begin(struct manager_count *count);

/* manager_count_helpers - how many there shall be after @sample; by the manager */
unsigned manager_count_helpers(struct manager_count *count,
			       const struct manager_sample *sample);

#endif /* KTASK_USER_MANAGER_COUNT_H */
