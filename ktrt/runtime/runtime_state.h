/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The one runtime of the process: what all of its threads share, and whether it runs (start.c).
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_RUNTIME_STATE_H
#define RUNTIME_RUNTIME_STATE_H

#include <pthread.h>

#include <ktask/runtime.h>
#include <umt.h>

#include "atomic.h"
#include "node_queue.h"
#include "record_pool.h"
#include "sparse_mask.h"
#include "task_record.h"
#include "worker.h"

struct core;
struct node;

/* How nodes of graphs are judged; see short_tasks.c. */
struct node_times {
	/* If a thief needs less than this for each node, with all that it costs to take
	 * it, the nodes may not be worth taking. */
	uint64_t taken_ns;
	/* They are not if their worker needs less than this for each. */
	uint64_t fast_ns;
	uint64_t fast_wide_ns; /* the same if several are taken at a time */
	uint64_t watch_ns; /* that worker is watched for so long at first, */
	uint64_t rest_ns; /* and left alone for so long at most */
};

#define FUNCS_KNOWN 64

struct runtime {
	/* I, down to the slots. */
	struct ktrt_options options;
	unsigned nr_cores, nr_caches, nr_nodes;
	struct node *nodes;
	unsigned short *near; /* the array that nodes[].near point into */
	struct ktrt_task **families; /* the array that the node queues use */
	int *core_of_cpu; /* index, or -1 */
	int nr_cpus;
	uint64_t spin_ns;
	/* Tests change it before there are nodes */
	struct node_times nodes_judged;
	/* On a single core makers try children once a worker has done so many tasks; tests
	 * change it */
	uint64_t trial_after;
	unsigned nr_slots; /* entries of ->workers and ->loaded, */
	unsigned slots_per_cache; /* of these, for each last-level cache */

	/* Cores that are idle, and workers that search for tasks (high half); A */
	CACHE_ALIGNED uint64_t idlers;
	uint32_t leader_sleeps; /* C, A */

	/* Read for each task and hardly ever written: */
	CACHE_ALIGNED uint32_t stop; /* G, A */
	/* These three outlive a runtime, and any thread may read them at any time. */
	uint32_t runs; /* G, A */
	uint32_t generation; /* changes in the child of a fork; A */
	uint32_t starts; /* of a runtime in this process; G, A */
	/* How many groups were ever cancelled, plus 1 if there is ->trace; A */
	uint32_t cancels;
	uint32_t failures; /* did a task fail, ever?  A */
	uint32_t plenty; /* so many tasks in a queue; task_sched.h; I */
	struct trace *trace; /* or NULL: see trace.h; I */
	struct core *cores; /* I */
	struct node_queue *node_queues; /* one a node; I */
	/* By slot; I; each NULL, or published under P with release */
	struct worker **workers;
	/* Queues that may have tasks, by slot; I; each O, A */
	union mask_line *loaded;
	/* Cores that nobody works on, by index; I; each L, A */
	union mask_line *idle;
	/* NULL: there is no UMT, or it is not open yet.  Written once, by the thread that
	 * opens it.  A thread that finds ->counts or ->has_umt set may read it */
	struct umt *umt;
	/* The same subscriber while workers belong to it; NULL while it is paused.
	 * Written by the thread that opens or resumes it, and in between by C; A */
	struct umt *watching;
	/* Those of UMT, or NULL; read by rt_counts(); written as ->watching is */
	const struct umt_core *counts;

	CACHE_ALIGNED uint64_t funcs[FUNCS_KNOWN]; /* see func_kind(); A */
	uint64_t tried[FUNCS_KNOWN]; /* see func_is_tried(); A */

	CACHE_ALIGNED uint32_t attached; /* G, A */
	uint32_t nr_threads; /* A */
	/* Threads that ended inside a task and clean up, and threads that do not belong to
	 * the runtime and end an event; A */
	uint32_t ending;
	/* How often no task was begun for some time, although some were ready; C, A */
	uint32_t stalls;
	/* The last of these that all workers had searched in vain for a task in; C, A */
	uint32_t searched;
	uint32_t in_vain; /* the last of these that no worker could end; C, A */
	uint64_t events; /* external ones that are outstanding; A */
	/* Where the last search for an idle core ended; A */
	uint32_t idle_hint;

	/* Workers that no core needs. */
	CACHE_ALIGNED pthread_mutex_t pool_lock; /* P */
	struct worker *pool; /* P */
	struct worker *retired; /* workers without a thread; P */

	struct pool tasks, smalls; /* record_pool.h */
	struct pool arrays[ACCESS_POOLS]; /* access_arrays.h */

	/* The thread that opens UMT, or NULL; I, then D */
	struct umt_load *load;
	/* Set by the thread that makes that thread, reset by it; A */
	uint32_t loading;
	/* UMT counts or is paused; written as ->watching is; A */
	uint32_t has_umt;
	/* UMT is paused, because all workers sleep; written as ->watching is; A */
	uint32_t resting;
	bool never_rests; /* C, A */
	uint64_t rest_after_ns; /* I, A: tests change it */
	pthread_mutex_t load_lock; /* D */
	pthread_t leader; /* I */
	/* An eventfd that wakes the leader; G, A: the thread that opens UMT may use it
	 * before there is a leader */
	int leader_fd;
	uint32_t leading; /* threads that lead: 1, or for a moment 0 or 2; A */
	uint64_t samples, overloaded; /* C, A */
	uint64_t replaced; /* A */
};

extern struct runtime rt;

/* false until started, and in the child of a fork.  Who is no thread of the runtime
 * may not believe what else it finds in rt. */
static inline bool rt_runs(void)
{
	return at_peek(&rt.runs);
}

static inline const struct umt_core *rt_counts(void)
{
	return at_load(&rt.counts);
}

/* As ktrt_attach(), but if the limit is reached wait until another thread is detached. */
int attach_when_possible(void);
/* Allocate the workers' slots, once the cores are known.  Return: 0 or -ENOMEM. */
int rt_make_slots(void);

#endif /* RUNTIME_RUNTIME_STATE_H */
