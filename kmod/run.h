/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run: one job in the kernel, from its control block to its result.
 *
 * Lives on the caller's stack but for the seats of helpers.  Owned by the
 * caller until helpers are offered seats; from then on a helper may touch its
 * own seat, the core's job, and the budget.
 */
#ifndef KTASK_KMOD_RUN_H
#define KTASK_KMOD_RUN_H

#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/sched.h>

#include "core/caps.h"
#include "core/job.h"
#include "core/tune.h"
#include "kmod/ktask_kernel.h"
#include "kmod/pool.h"

struct run_seat {
	struct seat seat;
	struct kt_worker worker;
	struct run *run;
	struct helper *worker_thread; /* for this seat alone, or NULL */
	struct kt_cap *node_cap; /* held, or NULL */
	unsigned int index;
	unsigned int range; /* that it was dealt */
	int cpu; /* promised to it until it begins, or -1 */
	bool counted; /* among the threads that did a chunk */
};

struct run {
	struct kt_job job;
	const struct ktask_ctl *ctl;
	struct task_struct *task; /* the caller; NULL: nobody waits yet */
	struct mm_struct *mm; /* that helpers use, or NULL; the caller's */
	const struct cred *cred; /* the caller's, while it waits */
	const struct cpumask *cpus; /* of who started it; NULL: the caller's */
	struct cgroup_subsys_state *group; /* the same, if @cpus are set */
	unsigned int scope; /* allocations that the caller may not make: PF_* */
	unsigned int depth; /* jobs around its caller, or who began it */
	pid_t pid; /* of the one that began it, */
	char comm[TASK_COMM_LEN]; /* for people */
	struct run_seat *seats; /* allocated, or NULL */
	unsigned int nr_seats;
	unsigned int nr_seated; /* seats [0, nr_seated) were used */

	struct kt_cap *budget; /* own_budget, or the outermost job's */
	struct kt_cap own_budget;
	int demand; /* its entry among the jobs, or -1 */

	struct kt_worker caller;
	struct kt_tune tune;
	unsigned int wanted; /* threads that tune wants */
	u64 start_ns, next_tick_ns, next_look_ns;
	u64 units_total;

	/* Of helpers that have left. */
	u64 chunks, units;
	unsigned int threads, lent;

	/* Held by helpers in chunks, taken by the caller before it waits. */
	struct lockdep_map lockdep;
};

/*
 * A job is done by run_init(), run_begin(), run_work() and run_end(), all of
 * them in its caller, except that of a started job the first two may be
 * another thread's.
 */
struct kt_range;

/* run_check - 0, or -EINVAL for what can be seen without a table of ranges */
int run_check(const struct ktask_ctl *ctl, const struct ktask_node *nodes,
	      size_t nr_nodes);

/* run_init - @ranges are filled from @nodes, and as long-lived as the run */
int run_init(struct run *run, struct kt_range *ranges,
	     const struct ktask_node *nodes, size_t nr_nodes,
	     const struct ktask_ctl *ctl);

/* run_begin - offer the first seats; @started: nobody may wait for long */
void run_begin(struct run *run, bool started);

/*
 * run_begin_again - of a started job that lacks helpers: offer seats once more
 *
 * By one thread at a time that stands in for the caller.
 *
 * Return: false if more may come later.
 */
bool run_begin_again(struct run *run);

void run_work(struct run *run);

/* run_end - collect helpers, undo, fill the result; returns the job's code */
int run_end(struct run *run);

/* run_units_done - a snapshot, for anybody while the run is in demand.c */
u64 run_units_done(struct run *run);

/* Which job a thread is in: an entry on the stack of whoever works. */
struct run_context {
	struct hlist_node node;
	struct task_struct *task;
	struct run *run;
};

void run_enter(struct run_context *context, struct run *run);
void run_leave(struct run_context *context);

/* run_current - the innermost job that the calling thread works on, or NULL */
struct run *run_current(void);

/* run_alloc_seats - places for up to @nr helpers; fewer without memory */
void run_alloc_seats(struct run *run, unsigned int nr);

/* run_seat_threads - make @threads work on the job, as far as can be had */
void run_seat_threads(struct run *run, unsigned int threads);

/* run_end_workers - threads of the caller's process; all seats are left */
void run_end_workers(struct run *run);

/* run_withdraw_offers - so that no more helpers begin */
void run_withdraw_offers(struct run *run);

/* run_wait_for_helpers - one at a time, lending the caller's priority */
void run_wait_for_helpers(struct run *run);

/* run_scope - memalloc_nofs_save() and its like: what the calling thread may not
 * wait for when it allocates */
static inline unsigned int run_scope(void)
{
	return current->flags &
	       (PF_MEMALLOC | PF_MEMALLOC_NOIO | PF_MEMALLOC_NOFS);
}

/*
 * run_lock_map - lockdep: until run_unlock_map() the calling thread is a helper in
 * its chunks, or the caller, which waits for all that they may lock
 */
static inline void run_lock_map(struct run *run)
{
	lock_acquire_exclusive(&run->lockdep,
			       min_t(unsigned int, READ_ONCE(run->depth),
				     MAX_LOCKDEP_SUBCLASSES - 1),
			       0, NULL, _THIS_IP_);
}

static inline void run_unlock_map(struct run *run)
{
	lock_map_release(&run->lockdep);
}

/* run_worker_at - the workers of the run: 0 the caller, then the seats */
const struct kt_worker *run_worker_at(void *run, unsigned int index);

/* run_stop_if_killed - by any thread of the job, between chunks */
void run_stop_if_killed(struct run *run);

#endif /* KTASK_KMOD_RUN_H */
