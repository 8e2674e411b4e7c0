/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Between manager.c and manager_sample.c: the manager of a job, and what it
 * samples of the job's threads.
 *
 * Locking: there is no lock.  Each field of struct manager says who writes it:
 *
 *	I: set before the manager is published in job->manager, constant from then
 *	M: the manager, until it has left; then the caller
 *	C: the caller
 *	A: written by one, read by any thread: kt_load() and kt_store()
 */
#ifndef KTASK_USER_MANAGER_SAMPLE_H
#define KTASK_USER_MANAGER_SAMPLE_H

#include "user/user_job.h"
#include "user/blocking/thread_sample.h"
#include "user/blocking/manager_count.h"

struct manager {
	struct pool_item
		pool_item; /* C; first: the pool's helper finds its manager by it */
	struct user_job *job; /* I */
	/* The compensating ones: as many as client and administrator allow.  M, A */
	struct kt_helpers helpers;
	uint32_t stop; /* futex: the manager shall leave; C, A */
	/* The same as a descriptor, where there is a monitor; or -1.  I */
	int doorbell;
	struct manager_count count; /* M */
	uint32_t has_one_cpu; /* the caller may use one CPU only; C, A */
	/* Of the caller, the helpers and the compensating helpers; M. */
	struct thread_progress *last;
	uint64_t done, done_ns; /* units, and when they last grew; M */
	unsigned extra; /* of these threads are stalled; M */
	/* Where compensating helpers may run.  The caller writes the one that is not in use. */
	struct kt_cpus cpus[2];
	struct kt_cpus allowed[2]; /* to the caller; likewise */
	uint32_t cpus_next; /* index that the manager shall use; C, A */
	uint32_t cpus_used; /* index that it uses; M, A */
	uint32_t generation; /* ctx->cpus_generation of cpus[cpus_next]; C, A */
	uint32_t used_generation; /* the same of cpus[cpus_used]; M */
	uint32_t caller; /* its thread id; I */
};

/* sample_working - threads that are in the job, and how many run; by the manager */
struct thread_sample sample_working(const struct manager *manager);

/*
 * sample_stalled - threads whose chunks may wait for others; by the manager
 * @units: that the job has done
 * @running: threads of it that run
 *
 * Return: threads that were stalled when no unit was done any more and no thread ran,
 * and that are still stalled.
 */
unsigned sample_stalled(struct manager *manager, uint64_t units,
			unsigned running, uint64_t now_ns);

/*
 * sample_load - set the number of CPUs, and of threads that run on them; by the manager
 * @allowed: CPUs that the caller may use
 *
 * If these are not all CPUs, threads that run may be on others.  Then the sample is that of a
 * machine of these CPUs alone, once it is known how many of them idle.
 */
void sample_load(struct manager_sample *sample, const struct kt_cpus *allowed);

#endif /* KTASK_USER_MANAGER_SAMPLE_H */
