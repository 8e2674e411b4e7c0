/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ktask for kernel code: divide one big job into chunks.  The calling thread does them
 * together with helper threads of the lowest priority.
 *
 * Words
 *   job      all of the work of one ktask_run()
 *   chunk    what one call of the thread function does
 *   caller   the thread that calls ktask_run(); it works, too
 *   helper   a thread that works beside the caller
 *   node     a NUMA node
 *   cap      the most helpers that a node or the machine may run
 *
 * Conventions
 *   Every range is [start, end).  Every call returns 0 or a negative errno; a
 *   non-zero value that the client's own thread function returned is passed
 *   through unchanged.  Getting no helper is not an error: the caller then
 *   does all of the work.
 *
 * Context
 *   Process context, may sleep.  Locks that the caller holds stay held while
 *   helpers work; a thread function must not take them.  A job may begin inside a
 *   chunk of another one; they share one budget of helpers.  A job makes no thread,
 *   and allocates nothing in a way that could enter reclaim or fail the job.  So it
 *   may run under any lock under which one may sleep (but see KTASK_CALLER_PROCESS).
 *   If the caller's allocations may not wait for something (memalloc_nofs_save() and
 *   its like), those of helpers may not either.  Helpers run on the CPUs that the
 *   caller may use.  So a caller that is bound to one CPU, as the work items of most
 *   workqueues are, has no helpers.
 */
#ifndef KTASK_KERNEL_H
#define KTASK_KERNEL_H

#include <linux/cpumask.h>
#include <linux/numa.h>
#include <linux/types.h>

struct task_struct;

/**
 * typedef ktask_thread_func - do one chunk
 * @start: first position of the chunk
 * @end: position behind the last one
 * @arg: func_arg of the control block
 *
 * Runs in the caller and in helpers, several at once on distinct chunks.  May
 * sleep.  A chunk that fails cleans up after itself: the undo function is
 * never called for it.
 *
 * Return: 0, or any other value to stop the job.
 */
typedef int (*ktask_thread_func)(void *start, void *end, void *arg);

/**
 * typedef ktask_undo_func - undo what successful chunks did
 * @start: first position
 * @end: position behind the last one
 * @arg: func_arg of the control block
 *
 * The caller calls it once the job has failed and every chunk has ended, in ascending
 * order within each range.  The positions of all calls together are exactly the chunks
 * that succeeded.  One call may span many chunks.  Cannot fail.
 */
typedef void (*ktask_undo_func)(void *start, void *end, void *arg);

/**
 * typedef ktask_iter_func - advance a position
 * @position: where the next chunk starts
 * @size: how many units the chunk shall have
 *
 * For work whose positions are not addresses.  One thread at a time per range.
 *
 * Return: the position @size units further.
 */
typedef void *(*ktask_iter_func)(void *position, size_t size);

/**
 * struct ktask_result - what a job did and cost
 * @error: what the job returned: the first error in time
 * @fail_error: the error of the lowest chunk that failed
 * @fail_pos: where that chunk starts
 * @threads: threads that did at least one chunk, the caller included
 * @helpers_lent: helpers that were lent the caller's priority
 * @chunks: chunks that succeeded
 * @remote_chunks: of these, chunks of one node that a thread of another node did
 * @units: units of the chunks that succeeded, before any undo
 * @wall_ns: time from the beginning to the end of the job
 */
struct ktask_result {
	int error;
	int fail_error;
	void *fail_pos;
	unsigned int threads;
	unsigned int helpers_lent;
	u64 chunks;
	u64 remote_chunks;
	u64 units;
	u64 wall_ns;
};

/**
 * define KTASK_KILLABLE - a fatal signal to the caller ends the job
 *
 * In ktask_ctl.flags.  The job ends with -EINTR.  Helpers for which the caller waits get
 * the signal, too, so that no chunk waits for something that will not come.  This is not
 * the default, because a task that is being killed must still run jobs to completion.
 */
#define KTASK_KILLABLE 1u

/**
 * define KTASK_CALLER_MM - helpers use the caller's address space
 *
 * In ktask_ctl.flags.  During the job it is their current->mm.  They have the caller's
 * rights, and the caller's memory group is charged for what they allocate.  Not for started
 * jobs, and not for callers without an address space.
 */
#define KTASK_CALLER_MM 2u

/**
 * define KTASK_CALLER_PROCESS - helpers are threads of the caller's process
 *
 * In ktask_ctl.flags, on kernels that can make such threads (6.9).  CPU time, control
 * group and memory policy are the caller's.  Such a job allocates, makes threads and may
 * be frozen, so its caller may hold no lock.  On other kernels, and if no thread can be
 * made, the flag has no effect.  Not for started jobs.
 */
#define KTASK_CALLER_PROCESS 4u

/* All flags; others are refused with -EINVAL. */
#define KTASK_FLAGS (KTASK_KILLABLE | KTASK_CALLER_MM | KTASK_CALLER_PROCESS)

/**
 * struct ktask_ctl - how to do a job
 * @thread_func: does a chunk
 * @func_arg: argument of the functions
 * @min_chunk_size: smallest chunk, in units
 * @undo_func: undoes chunks if the job fails, or NULL
 * @iter_func: advances a position; NULL: positions are addresses
 * @align: power of two; chunks begin at multiples of it, except at the start of a range;
 *	0: anywhere
 * @max_threads: most threads, the caller included; 0: the engine decides
 * @flags: KTASK_KILLABLE, KTASK_CALLER_MM, KTASK_CALLER_PROCESS
 * @deadline_ns: time from the start of the job after which no chunk begins; 0: none
 * @chunk_us: how long a chunk shall take; 0: 1000
 * @cpus: helpers run only on these, within the caller's; NULL: the caller's
 * @result: filled at the end, or NULL
 *
 * Made by DEFINE_KTASK_CTL(), changed by the setters, only read by ktask.
 */
struct ktask_ctl {
	ktask_thread_func thread_func;
	void *func_arg;
	size_t min_chunk_size;

	/* optional */
	ktask_undo_func undo_func;
	ktask_iter_func iter_func;
	size_t align;
	unsigned int max_threads;
	unsigned int flags;
	u64 deadline_ns;
	unsigned int chunk_us;
	const struct cpumask *cpus;
	struct ktask_result *result;
};

/**
 * KTASK_CTL_INITIALIZER - a control block with every option at its default
 * @func: does a chunk
 * @arg: given to it
 * @min_chunk: units; a chunk is never smaller
 */
#define KTASK_CTL_INITIALIZER(func, arg, min_chunk)       \
	{                                                 \
		.thread_func = (func), .func_arg = (arg), \
		.min_chunk_size = (min_chunk)             \
	}

/**
 * DEFINE_KTASK_CTL - define a control block
 * @name: of the variable
 * @func: does a chunk
 * @arg: given to it
 * @min_chunk: units; a chunk is never smaller
 */
#define DEFINE_KTASK_CTL(name, func, arg, min_chunk) \
	struct ktask_ctl name = KTASK_CTL_INITIALIZER(func, arg, min_chunk)

/**
 * ktask_ctl_set_undo_func - set how a job that fails is undone
 * @ctl: the control block
 * @undo: undoes successful chunks of a job that fails; or NULL
 */
static inline void ktask_ctl_set_undo_func(struct ktask_ctl *ctl,
					   ktask_undo_func undo)
{
	ctl->undo_func = undo;
}

/**
 * ktask_ctl_set_iter_func - set how positions are advanced
 * @ctl: the control block
 * @iter: advances a position; NULL: positions are addresses
 */
static inline void ktask_ctl_set_iter_func(struct ktask_ctl *ctl,
					   ktask_iter_func iter)
{
	ctl->iter_func = iter;
}

/**
 * ktask_ctl_set_max_threads - limit the threads of the job
 * @ctl: the control block
 * @max_threads: the caller included; 1: no helper at all; 0: the engine decides
 */
static inline void ktask_ctl_set_max_threads(struct ktask_ctl *ctl,
					     unsigned int max_threads)
{
	ctl->max_threads = max_threads;
}

/**
 * ktask_ctl_set_align - let chunks begin only at multiples of @align
 * @ctl: the control block
 * @align: a power of two, in units
 */
static inline void ktask_ctl_set_align(struct ktask_ctl *ctl, size_t align)
{
	ctl->align = align;
}

/**
 * ktask_ctl_set_killable - end with -EINTR when the caller is killed
 * @ctl: the control block
 */
static inline void ktask_ctl_set_killable(struct ktask_ctl *ctl)
{
	ctl->flags |= KTASK_KILLABLE;
}

/**
 * ktask_ctl_set_caller_mm - chunks access the caller's user memory
 * @ctl: the control block
 */
static inline void ktask_ctl_set_caller_mm(struct ktask_ctl *ctl)
{
	ctl->flags |= KTASK_CALLER_MM;
}

/**
 * ktask_ctl_set_caller_process - helpers are threads of the caller's process
 * @ctl: the control block
 */
static inline void ktask_ctl_set_caller_process(struct ktask_ctl *ctl)
{
	ctl->flags |= KTASK_CALLER_PROCESS;
}

/**
 * ktask_ctl_set_deadline - begin no chunk after the deadline
 * @ctl: the control block
 * @ns: time from the start of the job; 0: no deadline
 */
static inline void ktask_ctl_set_deadline(struct ktask_ctl *ctl, u64 ns)
{
	ctl->deadline_ns = ns;
}

/**
 * ktask_ctl_set_chunk_us - set how long a chunk shall take
 * @ctl: the control block
 * @us: microseconds; 0: 1000
 */
static inline void ktask_ctl_set_chunk_us(struct ktask_ctl *ctl,
					  unsigned int us)
{
	ctl->chunk_us = us;
}

/**
 * ktask_ctl_set_cpus - let helpers run only on these CPUs
 * @ctl: the control block
 * @cpus: must live as long as the job; NULL: the caller's
 *
 * CPUs on which the caller may not run are ignored.  While none of the others is online,
 * the job has no helpers.
 */
static inline void ktask_ctl_set_cpus(struct ktask_ctl *ctl,
				      const struct cpumask *cpus)
{
	ctl->cpus = cpus;
}

/**
 * ktask_ctl_set_result - ask for what a job did and cost
 * @ctl: the control block
 * @result: filled at the end of the job; or NULL
 */
static inline void ktask_ctl_set_result(struct ktask_ctl *ctl,
					struct ktask_result *result)
{
	ctl->result = result;
}

/**
 * struct ktask_node - a range of work that belongs to a node
 * @start: first position
 * @task_size: number of units; 0: the range is empty
 * @nid: the node, or NUMA_NO_NODE
 */
struct ktask_node {
	void *start;
	size_t task_size;
	int nid;
};

/* A kernel that is configured without ktask has stubs of these calls in <linux/ktask.h>. */
#ifndef KTASK_CONFIGURED_OUT
int ktask_run(void *start, size_t task_size, const struct ktask_ctl *ctl);
int ktask_run_numa(const struct ktask_node *nodes, size_t nr_nodes,
		   const struct ktask_ctl *ctl);
struct task_struct *ktask_task(void);

/* A job that runs while the thread that started it does something else; opaque. */
struct ktask_job;

int ktask_start(struct ktask_job **job, void *start, size_t task_size,
		const struct ktask_ctl *ctl);
int ktask_start_numa(struct ktask_job **job, const struct ktask_node *nodes,
		     size_t nr_nodes, const struct ktask_ctl *ctl);
int ktask_wait(struct ktask_job *job);
void ktask_cancel(struct ktask_job *job);

void *ktask_iter_range(void *position, size_t size);
#endif

#endif /* KTASK_KERNEL_H */
