/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of the runtime share: the records of tasks, workers and cores, and the
 * one runtime of the process.
 *
 * The life of a task: task.c makes it.  dependences.c makes it wait for its data.
 * task_sched.c queues and finds it, steal_tasks.c steals it; wait_search.c finds it if no
 * more threads can be made.  task_run.c runs it; visit.c has attached threads do so.
 * task_complete.c completes it, which makes others ready.  If there are no tasks, park.c puts workers to
 * sleep; wake.c chooses the worker that a task wakes; leader.c puts workers on cores
 * whose workers blocked.
 *
 * Locking.  A thread takes locks in this order; builds with the
 * address or the thread sanitizer assert that, and what is said to be done under a lock:
 *
 *	G: the lock of start.c: is there a runtime, and who is attached
 *	D: rt.load_lock
 *	L: a core's lock
 *	P: rt.pool_lock
 *	Q: innermost, one at a time: those of a node queue (node_queue.h), of a pool
 *	   of records (record_pool.h), of turns (dependences.h), of codes (error_codes.c)
 *
 * None is held while anything of the user runs.  L, P and Q are not held across a
 * system call but waking and asking for memory.
 *
 * Fields are written, and unless A says more read, by:
 *
 *	I: the thread that starts the runtime, under G, before there are threads that read
 *	   it; constant until they have ended
 *	O: the worker's own thread; while it has none, the thread that makes or retires
 *	   the worker
 *	W: the thread that wakes the worker, after it took the worker from its list (L, P)
 *	   and before it gives the signal; from then on O
 *	M: the thread that makes the task, before others can find it; constant until it is
 *	   complete
 *	B: the thread that runs the body; for the task that stands for an attached thread,
 *	   that thread
 *	E: the thread that decrements one of the task's counts to 0 or to its last step
 *	C: the leader; there is one at a time, and the next has all that it wrote
 *	A: any thread: by atomic operations
 *
 * A thief may read the record of a task that is complete, or that is used for another task
 * by now.  What it reads is A, and it must check it before it relies on it.
 */
#ifndef RUNTIME_RT_H
#define RUNTIME_RT_H

/* length: one header for what all parts of the runtime share */
#include <pthread.h>
#include <sched.h>
#include <sys/types.h>

#include <ktask/runtime.h>
#include <umt.h>

#include "atomic.h"
#include "deque.h"
#include "sparse_mask.h"
#include "record_pool.h"
#include "node_queue.h"

/*
 * What a task still lacks to be complete, in one number.  The low half counts children.
 * Above it are bits: its body runs, somebody waits for the children; and the number of
 * external events.  Children that the body has made are added only when the body ends
 * or waits ("credited"), so that making a child takes no atomic operation.  Until then
 * the low half may be negative.  0 means complete.
 */
#define LIVE_BODY (1ull << 32)
#define LIVE_WAITED (1ull << 33)
#define LIVE_EVENT (1ull << 40)

#define ARG_INLINE 64
#define ACCESS_INLINE 6
#define ACCESS_POOLS 4

struct epoch;
struct domain;

/* A task in the queue for one datum; see dependences.h. */
struct access {
	struct epoch *epoch; /* M */
	/* The next access that waits for the epoch, or for a turn.  M; then written by the
	 * thread that takes the list, or Q. */
	struct access *next;
	struct ktrt_task *task; /* M */
};

enum {
	TASK_ALWAYS = 1, /* runs even if its group is cancelled */
	TASK_ARG_ALLOCATED = 2,
	TASK_ACCESS_ALLOCATED = 4,
	TASK_OUTER = 8, /* stands for an attached thread */
	TASK_NODE_QUEUE = 16, /* has a priority or a node */
	/* Its record is lent by its parent and goes back to it */
	TASK_LOANED = 32,
	TASK_NODE = 64, /* a node of a graph: no task, but what tasks run */
	TASK_FOR_NODE = 128, /* runs the function of a node */
	TASK_RUN = 256, /* a run of a graph: the parent of TASK_FOR_NODE */
	/* Stands for a dependence of a task and is never queued; see proxies.h.
	 * TASK_UNDEFERRED is set as well, which it never is for a run of a graph. */
	TASK_PROXY = TASK_RUN,
	TASK_TURNS = 512, /* names commutative data, which tasks use by turns */
	TASK_HAS_TURNS = 2048, /* has its turn at all of these */
	TASK_SPOILT = 1024, /* data that it reads is of a task that failed */
	TASK_FINAL = 4096, /* so are its children, which are undeferred */
	TASK_UNDEFERRED = 8192, /* its maker waits and will run it; */
	TASK_MET = 16384, /* its dependences are met, so it may; */
	TASK_LEFT = 32768, /* the thread of its maker has ended meanwhile */
	/* Not TASK_UNDEFERRED: proxies stand for some of its dependences. */
	TASK_PROXIES = TASK_LEFT,
};

struct ktrt_task {
	CACHE_ALIGNED ktrt_func func; /* M, E (task_spoil()) */
	void *arg; /* M */
	/* Read by thieves of other tasks, too; M, A */
	struct ktrt_task *parent;
	union {
		/* Read by thieves of other tasks, too; M, A */
		struct ktrt_group *group;
		/* TASK_NODE: they wait for it; task_graph.h */
		struct ktrt_task **after;
	};
	/* In lists of ready tasks: E; on node queues: Q */
	struct ktrt_task *next;
	/* One more than the parent's; read as ->parent is; M, A */
	uint32_t nesting;
	uint16_t flags; /* M; what E adds: A */
	int16_t priority; /* M */
	union {
		struct {
			uint64_t spawned; /* children, by the body; B */
			uint64_t credited; /* of these, in @live; B */
		};
		struct { /* TASK_NODE, which needs no more than this line */
			uint32_t unmet; /* of those before it, in this run; A */
			uint32_t nr_before; /* task_graph.h */
			uint32_t nr_after;
			uint32_t arrow; /* the last of these, by number */
		};
	};

	CACHE_ALIGNED uint64_t live; /* A */
	/* Dependences not met, and 1 while they are made; A */
	uint32_t pending;
	int error; /* first code of the body or a child; A */
	/* First code of a child that was not yet waited for; A */
	int child_error;
	uint32_t wake; /* signal to the waiter: children are complete; A */
	union {
		struct domain *domain; /* data of the children; B */
		ktrt_func kept; /* TASK_NODE that is TASK_SPOILT; E */
	};
	struct access *access; /* M */
	uint32_t nr_access; /* M */
	int16_t node; /* M */
	uint16_t maker; /* slot of the worker that made it, plus 1; M */
	uint64_t order; /* on a node queue; Q */
	union {
		/* TASK_OUTER: a record that came back; A */
		struct ktrt_task *back;
		struct ktrt_task *of; /* TASK_FOR_NODE: the node; B */
		struct ktrt_graph *graph; /* TASK_RUN; M */
		struct proxies *proxies; /* TASK_PROXIES; M */
	};

	CACHE_ALIGNED char arg_inline[ARG_INLINE]; /* M, B */
	struct access access_inline[ACCESS_INLINE]; /* as what ->access has */

	/* On a node queue; Q: */
	union {
		struct ktrt_task *prev; /* in the list; */
		size_t heap_index;
	};
	struct ktrt_task *family; /* the next family in the bucket; */
	struct ktrt_task *elder, *younger; /* of its family, in a ring */
	/* The slot, plus 1, of the attached thread that has left it there; else 0, also
	 * on no node queue; Q, A */
	uint32_t left_by;
};

/* The tasks that a worker may run while it waits. */
struct wait_filter {
	struct ktrt_task *above; /* all below this one */
	struct ktrt_group *group; /* or of this group, and all below; NULL */
	/* NULL: it is @above.  Else of what is not below this one only what needs
	 * nothing any more; wait_search.c. */
	const struct ktrt_task *self;
	bool any; /* every task, below @above or not; ->self as ever */
	/* Also of what is below @self only what waits for nothing beside it: the worker may
	 * be given a turn at any moment, and keep it. */
	bool turns;
};

/* A late signal may meet a group that is free, so @wake must not be where a
 * free record has its links. */
struct ktrt_group {
	CACHE_ALIGNED struct record
		unused; /* while it is free: record_pool.h */
	uint64_t live; /* tasks, LIVE_WAITED; A */
	uint32_t wake; /* A */
	int error; /* A */
	uint32_t cancelled; /* A */
	uint32_t starts; /* rt.starts when it was made; constant */
};

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
	CACHE_ALIGNED struct ktrt_task *current;
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
	/* Where the kernel writes its CPU, or NULL; A */
	const uint32_t *on_cpu;
	struct ktrt_task *outer; /* the parent of the tasks that it makes; */
	uint64_t waited; /* ->outer->spawned at the last wait; */

	uint32_t stalls; /* the value of rt.stalls that it last saw; A */
	uint32_t no_open; /* that at which it last found none; wait_search.c */
	uint32_t grants; /* checks of the limit on children to skip */
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
	/* Of an attached thread on a core: the task that it waits for and that was left to
	 * workers, by this thread or by another one that waits for it, or NULL; A */
	const struct ktrt_task *left;
	/* Its mark; if it has another one it is gone.  Read with ->left it may be of a later
	 * note: wait_search.c; A */
	uint32_t left_by;
	const struct ktrt_task *left_for; /* what the thread did then; */

	/* The pool has them, like others */
	struct ktrt_task records[RECORD_TASKS];
};

struct core {
	CACHE_ALIGNED uint32_t lock; /* L */
	int cpu; /* I */
	unsigned index; /* I */
	int node; /* index of the node queue; I */
	unsigned cache; /* last-level cache; the workers' slots go by it; I */
	int active; /* workers here that the runtime has not put to sleep; L, A */
	/* Of these, without UMT, those that were blocked in a stall and whose task has
	 * neither ended nor waited since; L, A */
	int nr_stuck;
	struct worker *parked; /* an idle worker that last worked here; L */
	uint32_t nr_suspended; /* L, A */
	uint32_t arriving; /* a worker was woken and does not run yet; A */
	/* Workers that left in the middle of a task; oldest first; L */
	struct worker *suspended;
	struct worker **suspended_end; /* L */
	/* The worker that last left because the core was overloaded, or NULL; L */
	struct worker *leaver;
	uint32_t wants_thread; /* a request to the leader; A */
	struct worker *visitor; /* an attached thread; visit.c; or NULL; A */
	uint64_t
		served_ns; /* when it last got a worker as all were blocked; C */
	ktrt_func began; /* of the task that a worker last began there; A */
	ktrt_func early_func; /* tasks of it block early; C, A */
	uint32_t early; /* so many may begin although others are ready; A */
};

static inline void core_lock(struct core *core)
{
	lock_take(&core->lock, RANK_CORE);
}

static inline void core_unlock(struct core *core)
{
	lock_drop(&core->lock, RANK_CORE);
}

static inline void core_assert_locked(const struct core *core)
{
	rt_assert_locked(RANK_CORE);
	rank_assert(at_peek(&core->lock) != LOCK_FREE);
}

/* A NUMA node with cores; I. */
struct node {
	int id; /* as the kernel numbers it */
	unsigned first_cache, end_cache;
	unsigned short *near; /* the other nodes, nearest first */
};

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
extern __thread struct worker *self_worker
	__attribute__((tls_model("initial-exec")));

/* @w is the calling thread, if that is one; while it begins or ends it is none. */
static inline void worker_assert_own(const struct worker *w)
{
	rank_assert(!w || !self_worker || self_worker == w);
}

/* ---- start.c ---- */

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

/* Allocate the workers' slots, once the cores are known.  Return: 0 or -ENOMEM. */
int rt_make_slots(void);

/* ---- worker_threads.c ---- */

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

/* Has the calling thread seven eighths of a worker's stack left?  false also on a stack to which
 * the program switched by itself. */
static inline bool stack_suffices(const struct worker *w)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return here - w->stack_least < w->stack_usable;
}

/* ---- task.c ---- */

/* The calling thread, if it may make tasks; else NULL. */
static inline struct worker *current_worker(void)
{
	struct worker *w = self_worker;

	return w && likely(rt_runs()) ? w : NULL;
}

/* Attributes of whatever version, checked: 0, -EINVAL, -E2BIG */
int task_read_attr(struct ktrt_attr *own, const struct ktrt_attr *attr);
/* All of them but dependences and the copy of the argument. */
void task_take_attr(struct ktrt_task *task, const struct ktrt_attr *attr);
struct ktrt_task *task_new(struct worker *w, ktrt_func func, void *arg);

/* A record as that of a task of @parent which is not ready yet. */
static inline void task_renew(struct ktrt_task *task, struct ktrt_task *parent,
			      ktrt_func func, void *arg)
{
	task->func = func;
	task->arg = arg;
	/* Thieves may read a record that is used anew. */
	at_poke(&task->parent, parent);
	at_poke(&task->nesting, parent ? parent->nesting + 1 : 0);
	at_poke(&task->group, NULL);
	task->flags = 0;
	task->priority = 0;
	task->spawned = task->credited = 0;
	task->live = LIVE_BODY;
	task->error = task->child_error = 0;
	task->domain = NULL;
	task->nr_access = 0;
	task->node = -1;
}

void task_free(struct worker *w, struct ktrt_task *task);
/* Dependences are met: put it where it is found. */
void task_ready(struct worker *w, struct ktrt_task *task);
/* ---- task_complete.c ---- */

/*
 * The task's function has returned.  Return: a task that has become ready and is best
 * run now, or NULL.
 */
struct ktrt_task *task_ended(struct worker *w, struct ktrt_task *task,
			     int error);
/* A run has so many children less: nodes for which nothing waits.  Return: as
 * task_ended(). */
struct ktrt_task *task_sinks_complete(struct worker *w, struct ktrt_task *run,
				      unsigned nr);
/* A task of the group is complete, or was not made. */
void task_leave_group(struct ktrt_group *group);
/* Nothing is left of it: its successors, its parent, its group learn it. */
struct ktrt_task *task_complete(struct worker *w, struct ktrt_task *task);
bool task_is_cancelled(const struct ktrt_task *task);
/* The data of the task is spoilt: it fails with -ECANCELED when it becomes ready, or, with
 * KTRT_ALWAYS, runs and may ask ktrt_cancelled(). */
void task_spoil(struct ktrt_task *task);
/* In place of the function of a task that is skipped. */
int task_be_skipped(void *arg);
/* Return the first code, and forget it. */
int error_take(int *error);
/* Keep the code if it is the first one; otherwise drop it. */
void error_keep(int *error, int code);

/* ---- task_wait.c ---- */

/* Do it in the middle of another one, and what that makes ready if @above waits
 * for it, too. */
void task_help(struct worker *w, struct ktrt_task *task,
	       const struct ktrt_task *above);
/* Sleep until a task that the caller made with TASK_UNDEFERRED may be done.  @ready: it
 * lacks only its turns. */
void task_await_met(struct worker *w, struct ktrt_task *task, bool ready);
/*
 * Spin until the children have ended elsewhere, or a descendant can be taken.
 *
 * Return: the task; NULL: they ended, or another worker should have the CPU.
 */
struct ktrt_task *task_spin(struct worker *w, struct ktrt_task *task);
/* Children of it that are not complete; by its own thread. */
int32_t task_outstanding(const struct ktrt_task *task);
/* Wait for them, helping; the first code. */
int task_wait(struct worker *w, struct ktrt_task *task);

/* ---- task_graph.c ---- */

#define NODES_FETCHED 4

/* It is about to begin: what waits for it is written when it ends, and may be in
 * another core's cache. */
static inline void graph_node_fetch(const struct ktrt_task *node)
{
	uint32_t nr =
		node->nr_after < NODES_FETCHED ? node->nr_after : NODES_FETCHED;

	for (uint32_t i = 0; i < nr; i++)
		fetch_to_write(node->after[i]);
}

/* The thread that brings the number to 0 owns the node until the next run. */
static inline bool node_met(struct ktrt_task *node)
{
	if (at_load(&node->unmet) != 1 && at_sub(&node->unmet, 1) != 1)
		return false;
	at_poke(&node->unmet, node->nr_before);
	return true;
}

/* A node is complete: it makes others ready, one of which is put into *@next if
 * that is NULL.  true: nothing waits for it, so its run has one child less. */
static inline __attribute__((always_inline)) bool
node_complete(struct worker *w, struct ktrt_task *node, struct ktrt_task **next)
{
	struct ktrt_task **after = node->after;
	uint32_t nr = node->nr_after;

	for (uint32_t i = 0; i < nr; i++) {
		if (!node_met(after[i]))
			continue;
		if (w && !*next && !(after[i]->flags & TASK_NODE_QUEUE))
			*next = after[i];
		else
			task_ready(w, after[i]);
	}
	return !nr;
}

/* The same where it is seldom done. */
bool graph_node_complete(struct worker *w, struct ktrt_task *node,
			 struct ktrt_task **next);
/* Before that: it failed, so what needs it is skipped. */
void graph_node_failed(struct ktrt_task *node);
/* A run that its caller left is complete. */
void graph_run_complete(struct ktrt_task *run);

/* ---- child_limit.c ---- */

/* After every CHILDREN_PER_CHECK children a task checks whether there are too many.  If
 * so it runs some of them, or waits. */
#define CHILDREN_PER_CHECK 64
void child_limit_apply(struct worker *w, struct ktrt_task *parent);

/* ---- task_run.c ---- */

/* Run a task.  Return: a task that became ready and is best run next, or NULL. */
struct ktrt_task *task_run(struct worker *w, struct ktrt_task *task);
/* The same, and notes whether its function is brief. */
struct ktrt_task *task_run_timed(struct worker *w, struct ktrt_task *task);
/*
 * Run a task with a new record, in the middle of its parent.  If the task is complete when
 * @func has returned, it never counts as a child, and its record becomes w->blank.  Else
 * it counts from then on.  What it makes ready is queued.
 */
void task_run_inside(struct worker *w, struct ktrt_task *task, ktrt_func func,
		     void *arg);

/* A record for task_run_inside() or task_call(); NULL: no memory. */
static inline struct ktrt_task *task_take_blank(struct worker *w)
{
	struct ktrt_task *task = w->blank, *parent = w->current;

	if (unlikely(!task))
		return task_new(w, NULL, NULL);
	w->blank = NULL;
	at_poke(&task->parent, parent);
	at_poke(&task->nesting, parent->nesting + 1);
	return task;
}

/*
 * Call a function in the middle of a task as if it were one: it may make tasks and wait for
 * them, and has waited when it returns.  But it counts as none.  Only external events may
 * be outstanding; then @task has a group (group.c).  Return: the code of the function.
 */
int task_call(struct worker *w, struct ktrt_task *task, ktrt_func func,
	      void *arg);

/* ---- task_sched.c ---- */

/* Tasks in a queue that suffice for all cores, and no more than caches hold.  Half of
 * them are for thieves, while the owner does a task. */
#define QUEUE_PLENTY 256

/*
 * The worker's queue holds QUEUE_PLENTY tasks.  Its ->plenty is set, and tasks may be
 * done at once, until somebody takes a task and finds less than half of that left.
 */
void sched_plenty(struct worker *w);

/* Into the worker's queue, by O; sched_notify() comes next.  false: no memory. */
static inline __attribute__((always_inline)) bool
queue_own(struct worker *w, struct ktrt_task *task)
{
	bool queued = deque_push(&w->deque, task);

	/* Seen after the push, or by the next worker that searches: sched_notify() orders
	 * it before looking for idlers. */
	if (unlikely(!w->advertised)) {
		w->advertised = true;
		at_store_seq(mask_flag(rt.loaded, w->slot), 1);
	}
	return queued;
}

/* One was taken from the worker's queue. */
static inline void taken_from(struct worker *w)
{
	if (at_load_seq(&w->deque.plenty) &&
	    deque_size(&w->deque) < QUEUE_PLENTY / 2)
		at_store(&w->deque.plenty, 0);
}

/* Take the newest of the worker's queue, by O. */
static inline struct ktrt_task *pop_own(struct worker *w)
{
	struct ktrt_task *task;

	worker_assert_own(w);
	task = deque_pop(&w->deque);
	if (likely(task)) {
		taken_from(w);
	} else if (w->advertised) {
		w->advertised = false;
		at_store(mask_flag(rt.loaded, w->slot), 0);
	}
	return task;
}

static inline struct node_queue *own_node_queue(const struct worker *w)
{
	return &rt.node_queues[w->core ? w->core->node : 0];
}

/* The least loaded of any would cost a search; its own or the next best. */
static inline struct node_queue *node_queue_of(const struct worker *w,
					       const struct ktrt_task *task)
{
	unsigned node = w && w->core ? (unsigned)w->core->node : 0;

	if (task->node >= 0)
		node = (unsigned)task->node;
	return &rt.node_queues[node < rt.nr_nodes ? node : 0];
}

/* A task that @above waits for: the newest own one, else another's oldest,
 * else from a node queue. */
struct ktrt_task *sched_take_below(struct worker *w, struct ktrt_task *above);
/*
 * Is @task a descendant of @above?  Goes up at most BELOW_STEPS parents.  A thief may
 * ask for a record that is used for something else by now.  Then the answer does not
 * count, but each step reads a record, and nesting falls with each, so that it ends.
 */
bool task_is_below(struct ktrt_task *task, struct ktrt_task *above);
/* The same, and also: the task, or one between it and @above, belongs to @group. */
bool task_is_below_in(struct ktrt_task *task, struct ktrt_task *above,
		      const struct ktrt_group *group);
/* Any task, or NULL. */
struct ktrt_task *sched_take(struct worker *w);
bool sched_work_visible(void);
/* The same, but for what is in the queue of @but. */
bool sched_work_beside(const struct worker *but);
/* A task was queued: somebody may have to be woken. */
void sched_notify(struct worker *w);
/* A worker no longer searches for tasks. */
void sched_found(struct worker *w);
/* The life of a worker; it counts as searching for tasks. */
void sched_work(struct worker *w);

/* ---- steal_tasks.c ---- */

typedef bool (*wanted_func)(struct ktrt_task *task, void *arg);

static inline const struct node *own_node(const struct worker *w)
{
	return &rt.nodes[w->core ? w->core->node : 0];
}

/* The oldest task of another worker, of its own cache, its own node, then of other nodes,
 * the nearest first.  It is one that is wanted (NULL: any). */
struct ktrt_task *steal_task(struct worker *w, wanted_func wanted, void *arg);

/* ---- park.c ---- */

/* rt.idlers: idle cores, and workers that search for tasks. */
#define IDLERS_CORE 1ull
#define IDLERS_SEARCH (1ull << 32)

/*
 * Whoever wakes a worker first counts it as searching, so that nobody wakes another one
 * for the same task.
 */

/* Sleep until there may be tasks.  If w->maker is set afterwards, one task was handed
 * over, and the worker does not count as searching. */
void park_idle(struct worker *w);
/* Between two tasks: leave the core if two workers are ready there, or if a worker in
 * the middle of a task waits for it.  Returns at once or when woken. */
void park_overloaded(struct worker *w);
/*
 * In the middle of a task: let another worker have the core for one task: one that idles,
 * else one that yielded there, else, if tasks are queued, a new one.  @to_fresh: not one
 * that yielded.  Return: false if there is no such worker.
 */
bool park_yield(struct worker *w, bool to_fresh);
/* Sleep in the middle of a task until *@signal, at most for @limit_ns unless that is 0.
 * Another worker takes the core.  May return early. */
void park_until(struct worker *w, uint32_t *signal, uint64_t limit_ns);
/*
 * Wake the worker that sleeps on @core for a task in @maker's queue, if no other worker
 * uses that core.  It takes the task from there.  It does not count as searching, so
 * whoever queues another task wakes another worker.
 */
bool park_hand(struct core *core, struct worker *maker);
/*
 * Put a worker on a core that is idle: because it has no active workers, or because
 * they are @blocked.  Return: true if one comes; it takes over one count of searching.
 */
bool park_dispatch(struct core *core, bool blocked);
/* The same for a core whose active workers are blocked. */
bool park_reinforce(struct core *core);
/* The workers of a core are blocked and no tasks are queued: mark the core idle. */
void park_mark_idle(struct core *core);
/* Without UMT: all workers of the core are blocked.  From now on those inside tasks do not
 * count as ready until their task ends or waits. */
void park_stuck(struct core *core);
/* The calling worker was such a one, and its task has ended or waits. */
void park_goes_on(struct worker *w);
/* A new thread gets the core, or an attached thread visits it; under no lock. */
void park_arrive(struct core *core);
/* The thread could not be made, or the attached thread leaves: undo park_arrive(). */
void park_arrive_not(struct core *core, struct worker *visitor);
/* Take a worker off its list that sleeps because there are no tasks; or NULL. */
struct worker *park_take_idle(void);
/* Wake all workers, so that they see rt.stop. */
void park_wake_all(void);
/* All threads have ended: reset what was counted of them. */
void park_forget(void);
/* The thread of the worker ends inside a task or a wait. */
void park_gone(struct worker *w);

static inline void count_search(void)
{
	at_add(&rt.idlers, IDLERS_SEARCH);
}

static inline unsigned idle_cores(void)
{
	return (uint32_t)at_load_seq(&rt.idlers);
}

/* Workers that are ready on a core, as far as it is known. */
static inline int core_ready(const struct core *core)
{
	const struct umt_core *counts = rt_counts();

	return counts ? umt_ready(counts, core->cpu)
		      : at_peek(&core->active) - at_peek(&core->nr_stuck);
}

/* Must a worker call park_overloaded() between two tasks? */
static inline bool core_overloaded(const struct core *core)
{
	return at_peek(&core->nr_suspended) || core_ready(core) > 1;
}

/* ---- task_loop.c ---- */

/* Is the task, which is ready and has not begun, a part of a loop?  Then by which function
 * that is done. */
bool loop_has_part(const struct ktrt_task *task, ktrt_func *func);
/* Is the task a call of task_call() in place of a loop's parts?  Then its maker waits for
 * external events by a group that it gets when it adds some. */
bool loop_is_here(const struct ktrt_task *task);

/* ---- group.c ---- */

/*
 * As ktrt_run().  @takes_part: the caller, if it is a worker or an attached thread that has a
 * core, does the task itself, and what that makes.
 */
int group_run(ktrt_func func, void *arg, bool takes_part);
/* How much memory is mapped for groups. */
size_t groups_bytes(void);
/* In the child: groups of the parent are never given back. */
void groups_after_fork(void);

/* Was the group made by the runtime that runs now, and not by one that has ended, or in
 * the parent of a fork?  Called by threads of the runtime. */
static inline bool group_is_current(const struct ktrt_group *group)
{
	return group->starts == rt.starts;
}

/* ---- error_codes.c ---- */

/* A fork holds the lock of the table, so that the child gets a consistent copy. */
void codes_before_fork(void);
void codes_after_fork(void);

/* ---- proxies.c ---- */

static inline bool task_has_proxies(const struct ktrt_task *task)
{
	return (at_peek(&task->flags) & (TASK_UNDEFERRED | TASK_PROXIES)) ==
	       TASK_PROXIES;
}

/* The record of a proxy is ready: what it waited for in its chain is over. */
void proxy_ready(struct worker *w, struct ktrt_task *record);
/* The task is complete: release all data that it has not released yet. */
void proxies_complete(struct worker *w, struct ktrt_task *task);
/* Must children of the task still wait for data that it names weakly?  Called by a thread
 * that has taken the task and not begun it, or that runs a task below it. */
bool proxies_closed(const struct ktrt_task *task);

/* ---- group_search.c ---- */

/*
 * A task of the group, or below one of it, and below the task that the worker does; or
 * NULL.  The quick way: tasks are left to other workers that a longer search would find.
 */
struct ktrt_task *search_group(struct worker *w,
			       const struct ktrt_group *group);

/* ---- wait_search.c ---- */

/* What the task waits for that the worker does: its children, or the tasks of a group
 * unless that is NULL. */
struct wait_filter filter_for(struct ktrt_task *task, struct ktrt_group *group);
/* Would the task on this stack have to wait for what is below it there? */
bool filter_refuses(const struct wait_filter *filter,
		    const struct ktrt_task *task);

/* Does @filter want the children of @parent? */
bool filter_wants_children(const struct wait_filter *filter,
			   const struct ktrt_task *parent);
/*
 * For when no more threads can be made.  Return: a task that @filter wants, in whichever
 * queue it is, or NULL.
 */
struct ktrt_task *search_wanted(struct worker *w,
				const struct wait_filter *filter);
/* The same whatever the caller waits for: any task that does not wait for others' data
 * below. */
struct ktrt_task *search_open(struct worker *w);
/* Was there a stall since it was last asked? */
bool search_is_due(struct worker *w);
/* Nothing moves: have workers that sleep in the middle of tasks search. */
void search_by_all(void);

/* As many threads as there may be? */
static inline bool threads_at_limit(void)
{
	return at_peek(&rt.nr_threads) >= rt.options.max_threads;
}

/* Has the node queue a task that goes before those in the worker's own queue? */
static inline bool sched_urgent(const struct worker *w)
{
	return node_queue_urgent(&rt.node_queues[w->core ? w->core->node : 0]);
}

/* ---- short_tasks.c ---- */

/* Run a task that another worker made, and rest if such tasks are not worth taking. */
struct ktrt_task *short_tasks_run(struct worker *w, struct ktrt_task *task);
/* Nodes that are taken between two verdicts, at first. */
#define SHORT_TASKS_JUDGED 8
/* When the runtime begins. */
void short_tasks_begin(void);
/* The worker has a core and took @nr nodes of a graph from @victim.  If nodes seem not to be
 * worth taking, this sets w->fast. */
void short_tasks_judge(struct worker *w, struct worker *victim, uint32_t nr);
/* Take nothing from w->fast as long as it is that fast; if @awaited is not NULL, only as
 * long as @awaited has children. */
void short_tasks_rest(struct worker *w, const struct ktrt_task *awaited);

/* ---- early_tasks.c ---- */

/* The core gets a worker for a task at @now, because all of its workers are blocked. */
void early_note_served(struct core *core, uint64_t now);
/* Other workers are ready on the core, and this one has done a task of @func.  Return: a task
 * of @func that it may begin all the same, because such tasks block early; or NULL. */
struct ktrt_task *early_take(struct worker *w, ktrt_func func);

/* ---- wake.c ---- */

/* The core that an attached thread runs on; NULL: its CPU is not the runtime's. */
struct core *core_below(struct worker *w);

/* Wake a worker for an idle core, if there is one.  The core that the attached thread @w
 * runs on comes last.  The caller has added one to the count of searching workers. */
void wake_worker(struct worker *w);
/* The attached thread is about to wait.  Return: true if the worker of its core can
 * take over, or works and tasks are queued: the thread had better sleep than spin on
 * that CPU.  Then no other CPU has to wake up. */
bool wake_below(struct worker *w);
/* The same for one task in the queue of the attached thread, for which that will wait: the
 * worker takes it by park_hand(). */
bool wake_to_hand(struct worker *w);

/* ---- visit.c ---- */

/* A visit: an attached thread counts as a worker of the core that it runs on. */
struct visit {
	struct worker *w; /* NULL: the thread does not visit a core */
	int cancel_state;
};

/* UMT does not see the thread yet: a call of visit_be_seen() must follow if it stays. */
bool visit_begin(struct visit *visit, struct worker *w);
void visit_be_seen(struct worker *w);
/* Run what it waits for, as visit_help() does. */
void visit_continue(struct visit *visit, struct ktrt_task *above,
		    const struct ktrt_group *group);
/* Return: true if a worker takes the core over. */
bool visit_end(struct visit *visit);

/* The same if a task has ended the thread. */
static inline void visit_left(struct visit *visit)
{
	if (unlikely(visit->w))
		visit_end(visit);
}

/* Run brief tasks that the attached thread waits for: children of @above, or if @group is not
 * NULL, tasks of @group.  Return: true if there may be more and no worker comes for them. */
bool visit_help(struct worker *w, struct ktrt_task *above,
		const struct ktrt_group *group);

/* Should the thread leave the core that it visits?  It was moved to another CPU, or a worker
 * that left the core in the middle of a task waits for it, and has precedence. */
bool visit_is_over(struct worker *w);
/* May it go on with this task?  Then it stays. */
bool visit_may_do(struct worker *w, const struct ktrt_task *task);
/* The thread waits for a task that it, or another attached thread, leaves on a node queue. */
void visit_note(struct worker *w, const struct ktrt_task *task);
/* The thread may not do a task that it found: it is left to workers. */
void visit_leave(struct worker *w, struct ktrt_task *task);
/* Is the task that it has left still there?  Then it has searched. */
bool visit_left_stays(struct worker *w);

/*
 * A thread that waits asks this before it searches.  If it took that task from its queue
 * once more, a worker that looks for what was left would miss it.
 */
static inline bool visit_has_left(struct worker *w)
{
	return unlikely(at_peek(&w->left)) && visit_left_stays(w);
}

/* It waits for something else from now on. */
static inline void visit_forget(struct worker *w)
{
	if (unlikely(at_peek(&w->left)))
		at_store(&w->left, NULL);
}

/* ---- leader.c ---- */

int leader_start(void);
void leader_stop(void);
/* Wake the leader, because a thread is requested or because it has to stop. */
void leader_kick(void);
/* After a core was marked as not idle: the leader either sees that before it
 * sleeps for long, or is seen here. */
static inline void rouse_leader(void)
{
	if (unlikely(at_load_seq(&rt.leader_sleeps)))
		leader_kick();
}
/* Lead until a core wants the leader as a worker (@w), or rt.stop. */
void leader_lead(struct worker *w);

#ifdef RANK_ASSERTS
extern __thread bool leads_now;
#endif

/* The calling thread must be the leader, C of the legend. */
static inline void leader_assert(void)
{
#ifdef RANK_ASSERTS
	rank_assert(leads_now);
#endif
}

/* ---- umt_load.c ---- */

/* Open UMT: here or by another thread, as the options say. */
void umt_load_start(void);
void umt_load_stop(void);
/* By the leader, now and then.  Join the loader once it has ended.  Without this, exit()
 * without ktrt_stop() leaves an unjoined thread. */
void umt_load_join_ended(void);
/* By the leader, when all workers have slept for some time: pause UMT, so that it costs other
 * programs nothing.  Return: false if that is not possible now. */
bool umt_rest(void);
/* By the leader: a worker runs again, so resume UMT. */
void umt_rest_ends(void);

/* ---- cores.c ---- */

/* Fills in cores, nodes and caches; -EINVAL without a CPU, -ENOMEM */
int cores_read(const struct ktrt_options *options);
/* Lay out cores on the first @wanted of @cpus in the order of nodes and caches (0: as many as
 * ktask's limits allow).  cores_read() calls it with real CPUs, tests with made-up ones. */
int cores_lay_out(const cpu_set_t *cpus, int nr_cpus, unsigned wanted);
void cores_free(void);
/* Index of a NUMA node of the kernel's number, or -1 */
int cores_node(int node);

#endif /* RUNTIME_RT_H */
