/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job of this process: the engine's context, and what the user-space host
 * keeps beside it.
 *
 * ktask_run() and ktask_start() keep the first jobs of a process in static buffers.
 * Further ones lie on the caller's stack, or on the heap.
 *
 * Locking: there is no lock.  engine/context.h says who writes the context.  Of the
 * rest of struct user_job:
 *
 *	C: the caller; for a detached job the starting thread, until another one waits
 *	I: set before helpers are submitted, constant from then on
 *	A: written by one thread, read by any: kt_load() and kt_store()
 *
 * job_assert_owner() asserts the C in builds with assertions.
 */
#ifndef KTASK_USER_JOB_H
#define KTASK_USER_JOB_H

#include <ktask/ktask.h>

#include "engine/context.h"
#include "user/limits/limits.h"
#include "user/pool/user_pool.h"

/* Without an allocation a job has this many ranges and helpers. */
#define JOB_RANGES 8
#define JOB_ITEMS 16
/* How often a job that began in an overload finds out whether that is over. */
#define JOB_ALONE_NS 5000000

struct job_nodes;
struct manager;
struct topo;

struct user_job {
	struct kt_context ctx; /* first */
	const struct ktask_ctl *ctl; /* I */
	struct kt_range *ranges; /* own[] or allocated; I */

	struct user_job *parent; /* whose budget it shares, or NULL; I */
	struct user_job *outer; /* whose chunk the caller is in, or NULL; C */
	uint32_t nested; /* threads of it that do other jobs just now; A */
	struct manager *manager; /* NULL: it does not block; C, A */
	uint64_t seen_ns, seen_cpu_ns; /* at the last check for blocking; C */
	long seen_waits, seen_faults; /* C */
	bool faults_only; /* user/job_waits.h; I */
	uint32_t generation; /* of the pool; I */

	int entry; /* in the shared registry; -1 none; C */
	uint32_t listed; /* the entry is this job's; A */
	uint32_t nr_permitted; /* helpers that have a permit; A */
	const struct topo *topo; /* C */
	struct kt_cpus affinity; /* of the caller, at the last refresh; C */
	struct kt_cpus started_cpus; /* of who started a detached job; I */
	bool alone; /* it began in an overload: nothing is ready for helpers; C */
	bool entered; /* the pool; C */
	bool unmade; /* it began in an overload: no helper was made; C */
	unsigned nr_cpus; /* threads that these are enough for; C */
	struct kt_cpus cpus; /* where helpers of any node may run; C */
	struct kt_placement_capacity capacity; /* of these; C */
	struct job_nodes *nodes; /* user/job_cpus.h; NULL: one node; C */
#ifdef KT_ASSERTS
	pid_t owner; /* thread id of C */
#endif
	struct kt_range own_ranges[JOB_RANGES];
	struct kt_item own_items[JOB_ITEMS];
};

static inline struct user_job *job_of(struct kt_context *ctx)
{
	return (struct user_job *)ctx;
}

/* job_set_owner - the calling thread drives the job from now on */
static inline void job_set_owner(struct user_job *job)
{
#ifdef KT_ASSERTS
	job->owner = gettid();
#else
	(void)job;
#endif
}

static inline void job_assert_owner(const struct user_job *job)
{
#ifdef KT_ASSERTS
	kt_assert(job->owner == gettid());
#else
	(void)job;
#endif
}

/* The job that the calling thread is in, if any; a stack through outer. */
struct job_current {
	struct user_job *job;
	struct kt_worker *worker;
	bool faults_only; /* of the next job that it begins: user/job_waits.h */
};

struct job_current *job_current(void);

/* job_take_ctl - copy @ctl, of whatever version; 0, -EINVAL, -E2BIG */
int job_take_ctl(struct ktask_ctl *own, const struct ktask_ctl *ctl);

/* job_check - 0, or -EINVAL or -E2BIG for what ktask.h calls invalid; @ctl is of
 * the size that is known here */
int job_check(const struct ktask_ctl *ctl, const struct ktask_node *nodes,
	      size_t nr_nodes);

/*
 * job_init - fill in a job from its ranges
 *
 * Return: 0; -EINVAL; -ENOMEM if @nr_nodes ranges need memory and there is none.
 * Release with job_release().
 */
int job_init(struct user_job *job, const struct ktask_node *nodes,
	     size_t nr_nodes, const struct ktask_ctl *ctl);

/*
 * job_begin - enter the pool and submit the first helpers
 * @detached: the calling thread does not work on it; somebody may wait for it later
 */
void job_begin(struct user_job *job, bool detached);

/* job_grow - prepare helpers for a job that began alone; by its caller, between two
 * chunks */
void job_grow(struct user_job *job);

/* job_work - the calling thread works on it until nothing is left */
void job_work(struct user_job *job);

/* job_check_fork - is this the child of a fork since the job began? */
void job_check_fork(struct user_job *job);

/* job_end - collect helpers, undo, fill the result; returns the job's code */
int job_end(struct user_job *job);

void job_release(struct user_job *job);

/* job_progress - fill a snapshot; any thread */
void job_progress(struct user_job *job, struct ktask_progress *progress);

/* job_policy_read_ns - when a job of this process last read policy */
uint64_t job_policy_read_ns(void);

/* job_begin_tuned - begin with what `ktask tune` measured for this name, if it did */
void job_begin_tuned(struct user_job *job, unsigned max);

/* job_enter_registry - show other processes a job that may have helpers */
void job_enter_registry(struct user_job *job);

/* job_account - write its line for `ktask stat`, if that listens */
void job_account(const struct user_job *job, int error);

/* job_result - fill a result from a job that has ended with @error */
void job_result(struct ktask_result *result, struct user_job *job, int error);

#endif /* KTASK_USER_JOB_H */
