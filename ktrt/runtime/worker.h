/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The record of a worker or attached thread, and its thread (worker_threads.c).
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_WORKER_H
#define RUNTIME_WORKER_H

#include <pthread.h>
#include <sys/types.h>

#include <umt.h>

#include "deque.h"
#include "record_pool.h"
#include "task_record.h"

struct core;

#define RECORD_TASKS 2

struct counts {
	uint64_t tasks, steals, parks, wakeups, replaced, surrenders;
};

/* How often in a row a task has yielded while no other task ran on its stack. */
struct yields {
	const struct ktrt_task *by;
	uint64_t tasks; /* ->counts.tasks meanwhile */
	uint32_t nr;
};

/* A thread of the runtime, or an attached thread, which has ->outer, and a core only while
 * it visits one.  Fields without a letter are O; ->slot is constant. */
struct worker {
	CACHE_ALIGNED struct ktrt_task *current; /* A */
	struct core *core; /* W, A */
	struct cache tasks; /* records */
	struct cache smalls; /* epochs */
	struct cache arrays[ACCESS_POOLS]; /* access_arrays.h */
	unsigned slot; /* in rt.workers and rt.loaded */
	uint32_t generation;
	uint32_t stuck; /* counted in ->core->nr_stuck; L, A */
	uint32_t tick;
	/* Brief tasks are done on its stack while its stack pointer is less than
	 * ->stack_usable above this; 0: not yet known. */
	uintptr_t stack_least;
	size_t stack_usable;
	/* A function that is known to be brief since a task was last queued, or NULL */
	ktrt_func at_once;
	uint32_t nr_foreign; /* tasks of other workers that it ran, */
	uint64_t foreign_ns; /* what those of them took that were timed, */
	uint64_t rest_ns; /* for how long it last left them to their makers */
	uint64_t made; /* tasks, in 64s; A */
	/* Taking nodes of graphs from other workers, see short_tasks.c: */
	uint32_t nr_taken; /* nodes that it took since ->judged_ns; */
	uint32_t judged; /* once there are so many, it judges; */
	uint64_t judged_ns; /* when it last did; 0: never */
	struct worker *fast; /* may be faster alone, or NULL: */
	uint64_t fast_ns; /* if it needs no more than this for a node */
	bool advertised; /* its flag in the mask is set */
	/* Of an attached thread: */
	bool lone; /* it seems to make one task at a time and wait for it; */
	bool lent; /* a worker was woken on the CPU that it occupies; */
	/* it did tasks itself when it last could; A */
	bool helps;
	struct counts counts; /* A */
	struct core *below; /* the core that it ran on when last asked; */
	/* That of ->below when it began the task that it does without a core; */
	struct core *beside;
	/* Where the kernel writes its CPU, or NULL; A */
	const uint32_t *on_cpu;
	struct ktrt_task *outer; /* the parent of the tasks that it makes; A */
	uint64_t waited; /* ->outer->spawned at the last wait; */

	uint32_t stalls; /* the value of rt.stalls that it last saw; A */
	uint32_t no_open; /* that at which it last found none; wait_search.c */
	uint32_t grants; /* checks of the limit on children to skip */
	uint32_t untimed; /* nodes until the next is timed; task_run.c */
	struct yields yields;
	/* A record for tasks that are run at once, or NULL */
	struct ktrt_task *blank;
	bool begun_now; /* ktrt_spawn_begin() began such a task */

	struct deque deque; /* deque.h */

	/* Signal: go on, on ->core.  SIGNAL_NONE only from when it is on a list
	 * until it is woken; A */
	CACHE_ALIGNED uint32_t wake;
	uint32_t *awaited; /* the signal for which it sleeps, or NULL; A */
	/* The worker in whose queue a task waits for this one, or NULL; W */
	struct worker *maker;
	int cpu; /* that it is bound to, or -1; W */
	bool leads; /* is the leader, or will be when it is woken; W */
	bool borrows; /* the maker of its last task seems to wait for the CPU */
	bool handed; /* its next task is of such a maker */
	bool listed; /* on core->parked; L; or */
	bool pooled; /* on rt.pool; P */
	bool joinable; /* P, A */
	struct worker *link; /* in a list; L or P, as the list is */
	pid_t tid; /* A */
	struct umt *umt; /* the subscriber that monitors it, or NULL; A */
	pthread_t
		thread; /* written by the thread that makes it, read to join it */
	/* Of an attached thread on a core or in a task: the task that it waits for and that
	 * was left to workers, by this thread or by another one that waits for it, or NULL; A */
	const struct ktrt_task *left;
	/* Its mark; if it has another one it is gone.  Read with ->left it may be of a later
	 * note: wait_search.c; A */
	uint32_t left_by;
	const struct ktrt_task *left_for; /* what the thread did then; */

	/* The pool has them, like others */
	struct ktrt_task records[RECORD_TASKS];
};

extern __thread struct worker *self_worker
	__attribute__((tls_model("initial-exec")));

/* @w is the calling thread, if that is one; while it begins or ends it is none. */
static inline void worker_assert_own(const struct worker *w)
{
	rank_assert(!w || !self_worker || self_worker == w);
}

struct worker *worker_new(unsigned cache);
/* Its thread is gone; the record may be used again. */
void worker_retire(struct worker *w);
/* Start a thread for @core, or one that leads: NULL.  The caller did park_arrive() and
 * counts it as searching.  -EAGAIN also if there are max_threads. */
int worker_start(struct core *core);
/* Find out where the stack of the calling thread, an attached one, ends. */
void worker_read_stack(struct worker *w);
/* Run on the worker's core only. */
void worker_bind(struct worker *w);
int worker_thread(pthread_t *thread, void *(*main)(void *), void *arg);
/* Let UMT, if it is there, watch the calling worker, or no longer. */
void worker_monitor(struct worker *w, bool on);
/* Does it watch all that do not sleep? */
bool worker_all_monitored(void);
bool worker_all_blocked(const struct core *core);
void worker_join_all(void);
void worker_free_all(void);

/* Is the thread, a worker or an attached one, in the middle of a task, or on a core?  Of another
 * thread the answer may be out of date. */
static inline bool worker_is_inside(const struct worker *w)
{
	return at_peek(&w->core) || at_peek(&w->current) != at_peek(&w->outer);
}

/* It has waited for one task.  In the middle of a task that says nothing of others. */
static inline void worker_forget_lone(struct worker *w)
{
	if (worker_is_inside(w))
		w->lone = false;
}

/* The core of a task that runs on this thread, or NULL. */
static inline const struct core *worker_core(const struct worker *w)
{
	return likely(w->core)		? w->core
	       : w->current != w->outer ? w->beside
					: NULL;
}

/* Has the calling thread seven eighths of a worker's stack left?  false also on a stack to which
 * the program switched by itself. */
static inline bool stack_suffices(const struct worker *w)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return here - w->stack_least < w->stack_usable;
}

#endif /* RUNTIME_WORKER_H */
