/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* length: one header has all that a program in C needs, and the glossary */
/*
 * The task runtime: functions that run when their data is ready.
 *
 * A program says what data a task reads and writes.  The runtime runs the task on
 * one of its workers once all earlier tasks that write what it uses, or use what it
 * writes, are complete.  If a worker blocks in the kernel (I/O, a page fault, MPI
 * over sockets) another worker takes its core for that time.  That works on a stock
 * kernel and without help of the task: see umt.h.
 *
 * Glossary
 *   task     a function call that is executed later, once its dependences are met
 *   child    a task that another task, its parent, made
 *   worker   a thread of the runtime, bound to a core while it works
 *   core     one CPU that the runtime uses; at most one worker works there
 *   leader   the thread that puts workers on cores whose worker blocked
 *   complete a task is complete when its function has returned, its external
 *	      events are done and its children are complete
 *   release  tasks made later no longer wait for a task's data.  Happens when the
 *	      task is complete, or earlier: KTRT_EARLY_RELEASE
 *   weak     a dependence for which a task's children wait, not the task
 *
 * Conventions
 *   Calls return 0 or a negative errno.  A task's function returns 0 or a code
 *   of its own.  A wait returns, of codes that are not 0, that of the task that was
 *   complete first; if nobody waits for a task, its code goes to its parent.  The code
 *   of a task is the first one: of its function, when that returns, or of a child for
 *   which it did not wait.  The library never prints and never exits.
 *   A task has failed if it returned a code, if a child failed for which it did not wait, or
 *   if its group was cancelled.  The data that it should have written is spoilt.  Tasks that
 *   read spoilt data (all modes but KTRT_OUT) are skipped: they fail with -ECANCELED, and
 *   the data that they should have written is spoilt, too.  A task that only writes the data
 *   runs and makes it good.  A task with KTRT_ALWAYS runs in any case and may ask
 *   ktrt_cancelled().  After a wait, or a wait for a group that returned a code, new tasks
 *   of the caller run again.
 *   A structure that begins with its size may be that of an older or a newer header.  Fields
 *   that a shorter one lacks are read as zero.  A longer one is accepted if its unknown
 *   fields are zero; otherwise, and above 4096 bytes, the call returns -E2BIG, and -EINVAL
 *   if a required field is missing.  The library fills a structure as far as its size goes;
 *   unknown fields become zero.  Other structures never change.
 *   A pointer that a call needs must not be NULL: -EINVAL; calls without errors do nothing.
 *
 * Context
 *   Any call may be made inside a task, and by a thread that is attached
 *   (ktrt_start() attaches its caller), but not in a signal handler.  A task's
 *   function must not leave by longjmp.  If it leaves by pthread_exit(), the task
 *   fails with -ECANCELED and the worker is replaced.  An attached thread that ends,
 *   there or elsewhere, waits for its tasks and is detached; their code is dropped.
 *   An exception that leaves a task ends the process; with runtime.hpp a wait throws
 *   it.  Workers have every asynchronous signal blocked.
 *   The child of a fork has no runtime: calls return -ESRCH until ktrt_start(); a
 *   task that forked ends the child by exit(0) if it returns.
 *
 * Locks
 *   While they wait, ktrt_wait(), ktrt_group_wait() and ktrt_run() run tasks on the
 *   caller's stack: only those for which they wait (but see "Threads").  Calls that make
 *   tasks may run the new one or other children of the caller, if there are very many.
 *   So the caller must hold no lock that these tasks need.  Calls that make tasks run
 *   only tasks whose functions were brief so far, unless no other thread is left: a long
 *   task may wait for what its maker does later.  If a function that was brief so far
 *   does that once, its maker may run it and stand for ever: make tasks of such functions
 *   by ktrt_dispatch().  An undeferred task always runs inside the call.  Otherwise an
 *   attached thread runs only brief tasks; see ktrt(3).
 *
 * Threads
 *   There are never more than max_threads workers, including blocked ones; attached
 *   threads do not count, nor does the leader, unless KTRT_FOLLOW makes a worker of it.
 *   If there are so many, a task that is ready waits until a worker is free.
 *   A worker that waits by a call of this header runs the tasks for which it waits,
 *   wherever they are queued, so children and groups need no further thread.  If all
 *   workers, and all attached threads that run tasks, wait in this way and find no such
 *   task, workers run after some 40 ms tasks that attached threads wait for but may not
 *   run, and after some 60 ms, or a second if there are external events, any task.
 *   A worker that blocks otherwise (a pipe, a lock) runs nothing.  If it waits for a task
 *   that has no thread, both wait for ever: max_threads must be more than the number of
 *   threads that can block at once.  ktrt_info.stalls counts such times.
 */
#ifndef KTASK_RUNTIME_H
#define KTASK_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KTRT_API __attribute__((visibility("default")))
#else
#define KTRT_API
#endif

struct ktrt_task;
struct ktrt_group;
struct ktrt_graph;

/* ---- tasks ---- */

/**
 * ktrt_func - what a task does
 * @arg: as given, or a copy of what it pointed to (ktrt_spawn_copy())
 *
 * Return: 0, or a code, which a wait for the task returns.
 */
typedef int (*ktrt_func)(void *arg);

/* How a task uses data. */
enum ktrt_mode {
	KTRT_IN = 1, /* reads */
	KTRT_OUT = 2, /* writes */
	KTRT_INOUT = 3,
	KTRT_COMMUTATIVE =
		7, /* reads and writes, in any order, one at a time */
	KTRT_REDUCTION = 11, /* adds to it; see struct ktrt_reduction */
	/* The task itself does not use the data.  Its children that name it do, and
	 * they wait for what the task would have waited for.  Released as with
	 * KTRT_EARLY_RELEASE. */
	KTRT_WEAK = 16,
	KTRT_WEAK_IN = 17,
	KTRT_WEAK_OUT = 18,
	KTRT_WEAK_INOUT = 19,
};

/**
 * struct ktrt_reduction - data that tasks add to, each thread to a copy
 *
 * A dependence on it has the address of this structure as @addr, mode KTRT_REDUCTION
 * and no @len.  Such tasks run at the same time.  The data has their sum when a task
 * begins that names the data in another mode, after ktrt_wait_for() for it, and after
 * ktrt_wait() or the end of their maker.  Until then nobody may use the data, and this
 * structure must not change.  Another reduction of the same data comes after this one.
 *
 * Set @struct_size by KTRT_REDUCTION_INIT.
 */
struct ktrt_reduction {
	size_t struct_size;
	void *data; /*          what it is added to; such a task's address */
	size_t bytes; /*        of a copy; it need not be as the data */
	const void *neutral; /* what a copy begins with; NULL: zero */
	/*
	 * Adds a copy to the data and frees what the copy owns.  Called for one
	 * copy at a time, in any order, by any thread, also after failures.  Must
	 * call nothing of this header.
	 */
	void (*combine)(void *data, void *copy, void *arg);
	void *arg; /*           NULL */
};

/* clang-format off */
#define KTRT_REDUCTION_INIT { sizeof(struct ktrt_reduction), 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * ktrt_reduction_copy - the calling thread's copy, for a task of the reduction
 * or a descendant
 *
 * No other task uses the copy as long as the task does not wait.
 * Return: NULL: it has no such dependence, or there is no memory.
 */
KTRT_API void *ktrt_reduction_copy(const struct ktrt_reduction *reduction);

/**
 * struct ktrt_dep - data that a task uses
 * @addr: where it is; only compared, never read (but see KTRT_REDUCTION)
 * @len: 0: the address stands for all of the data.  Else bytes: ranges that overlap
 *	name the same data.  Compared with ranges an address is a range of one byte,
 *	however large the object is there: a range that contains its first byte is the
 *	same data, a range of its other bytes is not.
 * @mode: enum ktrt_mode
 *
 * Dependences order children of one parent, in the order in which it made them; so
 * there are no cycles.  The parent's weak dependences order them, too.
 *
 * Never changes: tasks have arrays of them.  @mode can have new values.
 */
struct ktrt_dep {
	const void *addr;
	size_t len;
	unsigned mode;
};

/* ktrt_attr.flags: the task starts even if its group was cancelled or its data is
 * spoilt. */
#define KTRT_ALWAYS 0x1u
/*
 * The call waits for @deps, runs the task itself and returns when the task's function
 * has returned: for tasks that are too small for other workers.  (OpenMP's clause "if"
 * with a false condition.)
 */
#define KTRT_UNDEFERRED 0x2u
/*
 * All tasks that this one makes, by any call, are undeferred, and so are all that
 * these make.  (The clause "final".)  Nodes of a graph are not.
 */
#define KTRT_FINAL 0x4u
/* Data that the task names by KTRT_IN, KTRT_OUT or KTRT_INOUT is released when its
 * function has returned, no event is left, and children that name it are complete. */
#define KTRT_EARLY_RELEASE 0x8u

/**
 * struct ktrt_attr - optional attributes of a task
 *
 * Set @struct_size by KTRT_ATTR_INIT.
 */
struct ktrt_attr {
	size_t struct_size;
	const struct ktrt_dep *deps; /*  none; read during the call only */
	size_t nr_deps;
	size_t arg_bytes; /*             0: pass @arg itself; else copy these */
	struct ktrt_group *group; /*     none */
	int priority; /*                 0; higher first; -32768 to 32767 */
	int node; /*                     -1: any; NUMA node to prefer */
	unsigned flags; /*               0 */
	unsigned reserved[3]; /*         must be 0 */
	/*
	 * NULL: arg_bytes are copied.  Else this moves an object of arg_bytes from
	 * @from to @to, and back if the task cannot be made then.  The task's
	 * function destroys the object, so it is called even if the group was
	 * cancelled; see ktrt_cancelled().
	 */
	void (*move)(void *to, void *from);
};

/* clang-format off */
#define KTRT_ATTR_INIT \
	{ sizeof(struct ktrt_attr), 0, 0, 0, 0, 0, -1, 0, { 0, 0, 0 }, 0 }
/* clang-format on */

/**
 * ktrt_spawn - make a task without dependences
 *
 * It is a child of the calling task, or of the attached thread.
 *
 * Return: 0, -ESRCH (no runtime, or the thread is not attached), -ENOMEM.
 */
KTRT_API int ktrt_spawn(ktrt_func func, void *arg);

/* ktrt_spawn_copy - the same; the task gets a copy of @bytes bytes at @arg */
KTRT_API int ktrt_spawn_copy(ktrt_func func, const void *arg, size_t bytes);

/* ktrt_dispatch - for tasks that do different things: calls the ktrt_func with which @arg
 * begins.  Such tasks never count as brief (see "Locks"). */
KTRT_API int ktrt_dispatch(void *arg);

/*
 * ktrt_spawn_begin - the same in two steps, without a copy
 * @flags: 0, KTRT_ALWAYS
 *
 * The caller fills in the memory that this returns, and passes it to ktrt_spawn_end() with
 * the same function, without another call of this header in between.
 *
 * Return: memory for the argument of the task, 64 bytes, aligned to 16; NULL: not possible
 * here; use another call, which makes the task or returns an error.
 */
KTRT_API void *ktrt_spawn_begin(ktrt_func func, size_t bytes, unsigned flags);
KTRT_API void ktrt_spawn_end(ktrt_func func, void *arg);

/**
 * ktrt_spawn_attr - make a task with dependences, a priority, a group
 *
 * Return: 0, -ESRCH, -ENOMEM, -EINVAL: unknown flags or mode, non-zero reserved
 * fields, a priority or range out of bounds; data that the caller has released; data
 * that this task would write, although the caller, which names it weakly or with
 * KTRT_EARLY_RELEASE, only reads it; a group of an earlier runtime; -E2BIG.
 */
KTRT_API int ktrt_spawn_attr(ktrt_func func, void *arg,
			     const struct ktrt_attr *attr);

/**
 * ktrt_release - release data as if the calling task's function had returned
 * @deps: addr and len of dependences of the task that are weak or have
 *	KTRT_EARLY_RELEASE; the modes do not matter
 *
 * An undeferred task releases its data at its end.
 * Return: 0; -EINVAL: there is no such dependence, nothing was released; -ENOMEM: the
 * first ones were released, the others will be at the end; -ESRCH: not in a task.
 */
KTRT_API int ktrt_release(const struct ktrt_dep *deps, size_t nr_deps);

/* ktrt_in_final - 1 in a task with KTRT_FINAL and in its descendants; else 0 */
KTRT_API int ktrt_in_final(void);

/* ktrt_func_args - what a task does with four arguments; as ktrt_func */
typedef int (*ktrt_func_args)(void *a, void *b, void *c, void *d);

/**
 * ktrt_spawn_args - make a task with four arguments, and with dependences
 * @deps: @nr_deps of them; NULL: none.  Read during the call only.
 *
 * Return: as ktrt_spawn_attr().
 */
KTRT_API int ktrt_spawn_args(ktrt_func_args func, void *a, void *b, void *c,
			     void *d, const struct ktrt_dep *deps,
			     size_t nr_deps);

/**
 * ktrt_wait - wait until all children of the calling task (or thread) are complete
 *
 * Return: 0, the first code of a child since the last wait, or -ESRCH.
 */
KTRT_API int ktrt_wait(void);

/**
 * ktrt_wait_for - wait for those children of the caller that use some data
 * @deps: as a task would name them: KTRT_IN waits for children that write the data,
 *	other modes also for those that read it
 *
 * Does not wait for other children, and runs none of them unless there are max_threads
 * workers.  Codes go to ktrt_wait().
 *
 * Return: 0, -ECANCELED: the data is spoilt, because a task failed, and stays so;
 * -ESRCH, -ENOMEM; -EINVAL: as ktrt_spawn_attr(), also for data that the caller has
 * released or only reads; KTRT_REDUCTION and weak modes.
 */
KTRT_API int ktrt_wait_for(const struct ktrt_dep *deps, size_t nr_deps);

/**
 * ktrt_yield - let tasks that are ready go first
 *
 * In a task: another worker takes the core for a task, if one is ready.  With max_threads
 * workers none may be left.  Then the caller may run a task itself (ktrt_yield(3)), which
 * must not wait for what the caller does later.
 * Return: 0 or -ESRCH.
 */
KTRT_API int ktrt_yield(void);

/**
 * ktrt_run - run a task on a worker, and wait for it and all its children
 *
 * Any thread may call it, and waits while too many are attached; a task makes a child.
 *
 * Return: the code of the task, 0 or as a wait returns it; -ESRCH without a runtime;
 * -ENOMEM.
 */
KTRT_API int ktrt_run(ktrt_func func, void *arg);

/* ---- groups: tasks that are waited for or cancelled together ---- */

/* ktrt_group_new - Return: 0, -ENOMEM, -ESRCH */
KTRT_API int ktrt_group_new(struct ktrt_group **group);

/* ktrt_group_wait - wait until its tasks are complete; returns their first code, which goes
 * to the group only, and is kept after the runtime has ended: any thread gets it then. */
KTRT_API int ktrt_group_wait(struct ktrt_group *group);

/* ktrt_group_cancel - its tasks that have not started fail with -ECANCELED; any thread */
KTRT_API void ktrt_group_cancel(struct ktrt_group *group);

/* ktrt_group_free - waits first, and drops the code; NULL is fine.  Required even after the
 * runtime has ended.  While a runtime runs, it may do nothing in a thread that is not
 * attached. */
KTRT_API void ktrt_group_free(struct ktrt_group *group);

/* ktrt_cancelled - was the group of the calling task or of an ancestor cancelled, or is
 * data that the task reads spoilt? */
KTRT_API int ktrt_cancelled(void);

/* ---- graphs: made once, run often ---- */

/*
 * ktrt_graph_new - Return: 0, -ENOMEM, -ESRCH
 *
 * One thread at a time may add to it, run or free it.  After the runtime has ended calls
 * return -ESRCH, but the graph must still be freed.
 */
KTRT_API int ktrt_graph_new(struct ktrt_graph **graph);

/**
 * ktrt_graph_add - a node: one task of each run of the graph
 * @attr: NULL, or as for ktrt_spawn_attr(), without a group, move, reductions, weak
 *	modes or flags except KTRT_ALWAYS, and with addresses alone (len 0).
 *	Dependences order nodes in the order in which they were added, even those that
 *	commute.  A copy (arg_bytes) is made here, once.
 *
 * Return: the node's number, from 0 on; -EINVAL, -E2BIG, -ESRCH; -EBUSY: the graph
 * runs; -ENOMEM: if the memory was for an edge the graph can only be freed.
 */
KTRT_API int ktrt_graph_add(struct ktrt_graph *graph, ktrt_func func, void *arg,
			    const struct ktrt_attr *attr);

/**
 * ktrt_graph_edge - node @after starts when node @before is complete
 *
 * If @before fails in a run, @after is skipped in it.  @before must be the lower number,
 * so there are no cycles.
 * Return: 0, -EINVAL, -EBUSY, -ENOMEM (as above), -ESRCH.
 */
KTRT_API int ktrt_graph_edge(struct ktrt_graph *graph, int before, int after);

/**
 * ktrt_graph_run - run each node once, and wait until all are complete
 *
 * A node costs less than a task with dependences, because its predecessors are counted
 * and no data is looked up.  The nodes belong to the groups of the calling task and its
 * ancestors, as its children do.
 *
 * Return: 0, or the first code of a node; -EBUSY: it runs; -ENOMEM, -ESRCH.
 */
KTRT_API int ktrt_graph_run(struct ktrt_graph *graph);

/* ktrt_graph_free - does nothing while the graph runs: call it again later; NULL is fine */
KTRT_API void ktrt_graph_free(struct ktrt_graph *graph);

/* ---- loops ---- */

/* ktrt_range_func - does the work for [first, end); returns as ktrt_func */
typedef int (*ktrt_range_func)(size_t first, size_t end, void *arg);

/**
 * ktrt_for - call @func for all of [first, end) by parts, and wait
 * @grain: indices of a call, except the last one of a part; 0: as many as take some
 *	20 us, which is measured
 *
 * Parts are divided as long as workers need some.  After a code that is not 0, or
 * when the caller's group is cancelled, no other call is begun.
 * May be called by any thread, as ktrt_run().
 *
 * Return: 0, the first code, -ECANCELED, -ESRCH, -ENOMEM.
 */
KTRT_API int ktrt_for(size_t first, size_t end, size_t grain,
		      ktrt_range_func func, void *arg);

/* ktrt_reduce_func - adds the contribution of [first, end) at the right of @value */
typedef int (*ktrt_reduce_func)(size_t first, size_t end, void *value,
				void *arg);
/* ktrt_combine_func - adds @from at the right of @into; called for each copy of the
 * neutral value, also after a failure */
typedef int (*ktrt_combine_func)(void *into, void *from, void *arg);

/**
 * ktrt_reduce - the same with a value
 * @value: of @bytes bytes: before the call the neutral value, of which each part gets a
 *	copy; afterwards the result for the whole range
 *
 * The order of the range is kept, so @combine need only be associative.  The limits of
 * parts differ from call to call, and so do floating-point sums.
 */
KTRT_API int ktrt_reduce(size_t first, size_t end, size_t grain,
			 ktrt_reduce_func func, ktrt_combine_func combine,
			 void *value, size_t bytes, void *arg);

/* ---- codes that stand for an object, as an exception ---- */

/* Codes from here on are those of ktrt_code_new(). */
#define KTRT_CODE_FIRST 0x70000000u

/**
 * ktrt_code_new - make a code that stands for an object
 * @kind: what the object is, for ktrt_code_take(); the string must stay valid
 * @drop: frees the object: called once, by any thread, if the code was not the first,
 *	or nobody got it
 *
 * A task returns the code, and a wait for the task returns it.  The thread that gets it
 * takes the object, drops the code or, in a task, returns it.  Needs no runtime.
 *
 * Return: the code; -EINVAL, -ENOMEM: the object still belongs to the caller.
 */
KTRT_API int ktrt_code_new(const char *kind, void *object,
			   void (*drop)(void *object));

/* ktrt_code_take - return the object, which belongs to the caller then; NULL: the code
 * has none, or one of another kind */
KTRT_API void *ktrt_code_take(int code, const char *kind);

/* ktrt_code_drop - free the object of the code, if it has one */
KTRT_API void ktrt_code_drop(int code);

/* ---- external events: a task that completes later ---- */

/* ktrt_self - the calling task; NULL outside of tasks */
KTRT_API struct ktrt_task *ktrt_self(void);

/* ktrt_events_add - the calling task completes only after @nr more calls (in
 * sum) of ktrt_events_done(); -ESRCH outside of tasks, -EINVAL above 65536,
 * -EOVERFLOW if more than 16777215 would be outstanding */
KTRT_API int ktrt_events_add(unsigned nr);

/* ktrt_events_done - @nr events of @task happened; from any thread, attached
 * or not.  After the last one @task must not be used. */
KTRT_API void ktrt_events_done(struct ktrt_task *task, unsigned nr);

/* ---- life cycle ---- */

/* ktrt_options.flags */
#define KTRT_NO_UMT 0x1u /* a core whose worker blocks stays idle */
#define KTRT_FOLLOW 0x2u /* leader-follower: the leader becomes the worker */
#define KTRT_UNBOUND 0x4u /* workers run on any of its cores; no UMT then */
#define KTRT_UMT_FIRST 0x8u /* ktrt_start() waits until UMT is loaded */

/**
 * struct ktrt_options - how to start
 *
 * Set @struct_size by KTRT_OPTIONS_INIT.
 */
struct ktrt_options {
	size_t struct_size;
	unsigned
		workers; /*      cores to use; 0: all that ktask_limits() allows */
	unsigned max_threads; /*  0: 8 a core, at least 64; see "Threads" */
	unsigned flags; /*        0 */
	unsigned
		spin_us; /*      0: 50; how long a worker looks before it sleeps */
	/* 0: 8192; who has so many incomplete children and makes more waits until there
	 * are half as many, or goes on slowly if none can be done; ktrt_start(3) */
	unsigned max_children;
	const void *cpus; /*      the caller's affinity; a cpu_set_t */
	size_t cpus_size; /*      bytes of *cpus */
	size_t stack_bytes; /*    the program's default */
	unsigned reserved[4]; /*  must be 0 */
};

/* clang-format off */
#define KTRT_OPTIONS_INIT \
	{ sizeof(struct ktrt_options), 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0, 0 } }
/* clang-format on */

/**
 * ktrt_start - start the workers, and attach the calling thread
 * @options: NULL for the defaults
 *
 * A process has one runtime at a time.  The environment sets what the program left open:
 * KTRT_WORKERS, and KTRT_UMT=0.  KTRT_TRACE and KTRT_DOT name files for traces of tasks;
 * see ktrt_start(3).  At most max_threads cores are used.
 *
 * Return: 0, -EBUSY: it runs already, -EINVAL (also KTRT_FOLLOW with one thread),
 * -E2BIG, -ENOMEM, -EAGAIN: no thread.
 */
KTRT_API int ktrt_start(const struct ktrt_options *options);

/**
 * ktrt_stop - wait for the calling thread's tasks and end the runtime
 *
 * Return: as ktrt_wait(); -EBUSY inside a task or while another thread is
 * attached, and then the runtime goes on; -ESRCH.
 */
KTRT_API int ktrt_stop(void);

/* ktrt_attach - let the calling thread make tasks; 0, -ESRCH, -EEXIST, -EAGAIN
 * when max_threads, or 64 if that is more, are attached; -ENOMEM */
KTRT_API int ktrt_attach(void);

/* ktrt_detach - wait as ktrt_wait() does, then undo ktrt_attach() */
KTRT_API int ktrt_detach(void);

/* ---- information ---- */

/** Facts about the runtime, and counts.  Set @struct_size by KTRT_INFO_INIT. */
struct ktrt_info {
	size_t struct_size;
	unsigned workers; /* cores in use */
	unsigned threads; /* workers that exist now */
	unsigned max_threads;
	unsigned nodes; /* NUMA nodes of these cores */
	unsigned caches; /* last-level caches of these cores */
	const char *backend; /* of UMT: "bpf", ...; "loading", "none" */
	uint64_t tasks; /* that ran */
	uint64_t steals; /* of these, taken from another worker's queue */
	uint64_t parks; /* a worker found nothing and slept */
	uint64_t wakeups; /* a worker was put on an idle core */
	uint64_t replaced; /* of these, in place of a blocked one */
	uint64_t surrenders; /* a worker left; two were ready on its core */
	uint64_t samples; /* of cores, at regular polls */
	uint64_t overloaded; /* of these, with more than one worker ready */
	size_t memory_bytes; /* of records of tasks */
	uint64_t stalls; /* at max_threads: tasks were ready, and none begun */
};

/* clang-format off */
#define KTRT_INFO_INIT \
	{ sizeof(struct ktrt_info), 0, 0, 0, 0, 0, 0, \
	  0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * ktrt_info_get - 0, -EINVAL without a size, -E2BIG, -ESRCH without a runtime
 *
 * In a thread that is neither a worker nor attached, this call, ktrt_thread_indices() and
 * ktrt_cpus() wait while another thread starts or ends the runtime, attaches or detaches.
 */
KTRT_API int ktrt_info_get(struct ktrt_info *info);

/* ktrt_worker - the number of the calling worker's core, from 0; -1 elsewhere */
KTRT_API int ktrt_worker(void);

/*
 * ktrt_thread_index - the number of the calling worker or attached thread, or -1
 *
 * No two threads have the same number at a time, even if they share a core.  A task
 * stays on its thread; while it waits, other tasks run there.  The number is less than
 * ktrt_thread_indices(), which is fixed (-ESRCH).
 */
KTRT_API int ktrt_thread_index(void);
KTRT_API int ktrt_thread_indices(void);

/* ktrt_cpus - the CPUs that are used, in order; returns how many there are,
 * of which the first @nr were stored; -ESRCH */
KTRT_API int ktrt_cpus(int *cpus, int nr);

/* ktrt_version - "MAJOR.MINOR.PATCH" of the library in use */
KTRT_API const char *ktrt_version(void);

#ifdef __cplusplus
}
#endif

#endif /* KTASK_RUNTIME_H */
