/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job in the kernel: the engine's context, and what the kernel host keeps
 * beside it.
 *
 * It lives on the caller's stack, its work items do not.  Only the caller uses it until
 * items are submitted.  From then on a helper may use its own item, the core's job, and the
 * budget.
 *
 * The caller calls job_init(), job_begin(), job_work() and job_end(), in this order.  For a
 * started job another thread may call the first two.
 *
 * Locking: there is no lock.  engine/context.h says who writes the context.  Of the
 * rest of struct kernel_job:
 *
 *	I: set by job_init(), constant from job_begin() on
 *	B: set at KT_STAGE_BEGUN, before others can find the job in kernel/engine/kernel_shares.c,
 *	   constant from then on
 *	C: the caller; of a started job who started it, and the work_struct that
 *	   stands in for the caller (kernel/engine/kernel_async.c), until somebody waits for it.
 *	   job_assert_caller() asserts that
 *	A: C, and any thread of the job reads it: READ_ONCE() and WRITE_ONCE()
 */
#ifndef KTASK_KERNEL_JOB_H
#define KTASK_KERNEL_JOB_H

#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/sched.h>

#include "engine/context.h"
#include "kernel/engine/steal.h"
#include "kernel/ktask_kernel.h"

struct kernel_job {
	struct kt_context ctx;
	const struct ktask_ctl *ctl; /* I */
	struct task_struct *task; /* the caller; NULL: nobody waits yet; A */
	struct task_struct *client; /* the outermost job's caller, or NULL; A */
	struct mm_struct *mm; /* that helpers use, or NULL; the caller's; I */
	const struct cred *cred; /* the caller's, while it waits; I */
	const struct cpumask *cpus; /* the starter's; NULL: the caller's; C */
	struct cgroup_subsys_state *group; /* the same, if @cpus are set; C */
	unsigned int scope; /* PF_MEMALLOC* flags of the caller; A */
	bool watched; /* by @steal; I */
	struct steal_watch steal; /* C */
	unsigned int nesting; /* jobs around its caller or starter; A */
	int share_entry; /* of shares_register(), or -1; B */
	pid_t pid; /* of its starter, if it may have helpers; B */
	char comm[TASK_COMM_LEN]; /* for people; B */

	/* Held by helpers in chunks, taken by the caller before it waits; B. */
	struct lockdep_map lockdep;
};

static inline struct kernel_job *job_of(struct kt_context *ctx)
{
	return container_of(ctx, struct kernel_job, ctx);
}

/* job_assert_caller - the calling thread is the one of the legend's C */
static inline void job_assert_caller(const struct kernel_job *job)
{
	kt_assert(!job->task || job->task == current);
}

/* job_check - check all that does not need a table of ranges; 0 or -EINVAL */
int job_check(const struct ktask_ctl *ctl, const struct ktask_node *nodes,
	      size_t nr_nodes);

/* job_check_each - check each range on its own; 0 or -EINVAL */
int job_check_each(const struct ktask_node *nodes, size_t nr_nodes,
		   const struct ktask_ctl *ctl);

/* job_init - fill @ranges, which must live as long as the job, from @nodes */
int job_init(struct kernel_job *job, struct kt_range *ranges,
	     const struct ktask_node *nodes, size_t nr_nodes,
	     const struct ktask_ctl *ctl);

/* job_begin - submit the first helpers; @detached: nobody may wait for long */
void job_begin(struct kernel_job *job, bool detached);

/* job_work - the calling thread takes chunks until none is left */
void job_work(struct kernel_job *job);

/* job_end - collect helpers, undo, fill the result; returns the job's code */
int job_end(struct kernel_job *job);

/* job_tell_end - update the statistics and fill the result; called by kernel_host.c once
 * the counts of all threads are added up */
void job_tell_end(struct kernel_job *job);

/* job_stop_if_killed - by any thread of the job, between chunks */
void job_stop_if_killed(struct kernel_job *job);

/* Which job a thread is in: an entry on the stack of each thread that works on a job.  The
 * list is protected by a lock of kernel/engine/nesting.c.  The rest is constant while the
 * entry is in a list. */
struct job_entry {
	struct hlist_node node;
	struct task_struct *task;
	struct kernel_job *job;
};

void job_enter(struct job_entry *entry, struct kernel_job *job);
void job_leave(struct job_entry *entry);

/* job_current - the innermost job that the calling thread works on, or NULL */
struct kernel_job *job_current(void);

/*
 * job_lock_map - lockdep: until job_unlock_map() the calling thread is a helper in
 * its chunks, or the caller, which waits for all that they may lock
 */
static inline void job_lock_map(struct kernel_job *job)
{
	lock_acquire_exclusive(&job->lockdep,
			       min_t(unsigned int, READ_ONCE(job->nesting),
				     MAX_LOCKDEP_SUBCLASSES - 1),
			       0, NULL, _THIS_IP_);
}

static inline void job_unlock_map(struct kernel_job *job)
{
	lock_map_release(&job->lockdep);
}

#endif /* KTASK_KERNEL_JOB_H */
