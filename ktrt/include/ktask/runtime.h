/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The task runtime: functions that run when their data is ready.
 *
 * A program says what a task reads and writes; the runtime runs it on one of
 * its workers once every task before it that writes, or is still to read, the
 * same data has completed.  A worker that blocks in the kernel (I/O, a page
 * fault, MPI over sockets) is replaced on its core for that time, on a stock
 * kernel, without the task's help: see umt.h.
 *
 * Glossary
 *   task     a function call that is done later, once its dependences are met
 *   child    a task that another task made; its parent
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
 *   of its own; the first code in time that is not 0 goes to whoever waits for
 *   the task, else up to its parent.  The library never prints and never exits.
 *   A task that returned a code, or of whose children one did for which it did
 *   not wait, has failed; so has one whose group was cancelled.  What it was to
 *   write is spoilt.  Tasks that read that (all modes but KTRT_OUT) are skipped:
 *   they fail with -ECANCELED, so what they were to write is spoilt, too.  Those
 *   that only write it run, and it is good again.  With KTRT_ALWAYS a task runs
 *   all the same; ktrt_cancelled() tells it.  Once a wait of their maker is over,
 *   or one for a group has told it a code, tasks that it makes from then on run.
 *   A structure that begins with its size may be that of an older or a newer
 *   header than the library's.  What a shorter one lacks is read as zero.  A
 *   longer one is accepted if all that the library does not know is zero;
 *   -E2BIG else, or above 4096 bytes, and -EINVAL without the fields that must
 *   be there.  What the library fills it fills as far as the size goes, with
 *   zero where it knows nothing.  Other structures never change.
 *
 * Context
 *   Any call may be made inside a task, and by a thread that is attached
 *   (ktrt_start() attaches its caller).  None from a signal handler.  A task's
 *   function must not leave by longjmp.  pthread_exit() in one fails the task
 *   with -ECANCELED; the worker is replaced.  If an attached thread does the task that
 *   thread ends, and stays attached, so that the runtime cannot be ended.  An exception
 *   that leaves one ends the process; runtime.hpp hands them to whoever waits.
 *   Workers have every asynchronous signal blocked.
 *   In the child of a fork the runtime is gone: calls return -ESRCH until
 *   ktrt_start(); a task that forked ends the child by exit(0) if it returns.
 *
 * Locks
 *   ktrt_wait(), ktrt_group_wait() and ktrt_run() run other tasks meanwhile, on the same
 *   stack: only such as they wait for (but see "Threads").  The calls that make tasks do
 *   so too where there are very many: the new one, or children of the caller.  So a lock
 *   may be held across them unless these tasks want it.  They do so only with functions
 *   whose tasks were brief so far, or where no other thread is left: tasks of others may
 *   wait for what their maker does later.  An undeferred task is always done inside the
 *   call.  All other tasks that an attached thread does were brief so far; see ktrt(3).
 *
 * Threads
 *   There are never more workers than max_threads, blocked ones included; the
 *   leader and attached threads are not counted.  With so many a task that is
 *   ready waits until a worker is free.
 *   A worker that waits by a call of this header is not lost meanwhile: it does
 *   what it waits for, wherever that is queued, so children and groups need no
 *   thread more.  Where all workers wait so and none finds anything, they do after
 *   some 40 ms what attached threads wait for and may not do, and after some 60 ms,
 *   or a second if there are external events, any task.
 *   A worker that blocks otherwise (a pipe, a lock) is lost for so long.  If
 *   that is for a task that has no thread, both wait for ever: max_threads must
 *   be more than can block at once.  ktrt_info.stalls tells of it.
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
 * Return: 0, or a code for whoever waits.
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
 * A dependence on it has its address as @addr, mode KTRT_REDUCTION and no @len.
 * Such tasks run at the same time.  What they added is in the data when a task
 * begins that names the data otherwise, after ktrt_wait_for() on it, and after
 * ktrt_wait() or the end of their maker; until then nobody may use it.  It must
 * stay as it is until then.  Other sums of the same data come after this one.
 *
 * Set @struct_size by KTRT_REDUCTION_INIT.
 */
struct ktrt_reduction {
	size_t struct_size;
	void *data; /*          what it is added to; such a task's address */
	size_t bytes; /*        of a copy; it need not be as the data */
	const void *neutral; /* what a copy begins with; NULL: zero */
	/*
	 * Adds a copy to the data and lets go of what the copy has, in any order
	 * and thread, one at a time, also after failures; calls nothing of this
	 * header.
	 */
	void (*combine)(void *data, void *copy, void *arg);
	void *arg; /*           NULL */
};

/* clang-format off */
#define KTRT_REDUCTION_INIT { sizeof(struct ktrt_reduction), 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * ktrt_reduction_copy - the calling thread's copy, for a task of the reduction
 * or one below it
 *
 * The task has it for itself as long as it waits for nothing.
 * Return: NULL: it has no such dependence, or there is no memory.
 */
KTRT_API void *ktrt_reduction_copy(const struct ktrt_reduction *reduction);

/**
 * struct ktrt_dep - data that a task uses
 * @addr: where it is; only compared, never read (but see KTRT_REDUCTION)
 * @len: 0: the address stands for all of the data.  Else bytes: what overlaps
 *	is the same data.  Where an address and ranges meet it is a range of one
 *	byte: one of them that has its first byte is the same data.
 * @mode: enum ktrt_mode
 *
 * Dependences are between children of one parent, in the order in which it
 * made them; so there are no cycles.  The parent's weak ones order them, too.
 *
 * Never changes: tasks have arrays of them.  More can be said by @mode.
 */
struct ktrt_dep {
	const void *addr;
	size_t len;
	unsigned mode;
};

/* ktrt_attr.flags: the task starts although its group was cancelled, or what it
 * reads is spoilt. */
#define KTRT_ALWAYS 0x1u
/*
 * The call waits for what @deps says, does the task itself and returns when its
 * function has: for tasks that are too small to be left to others.  (The clause
 * "if" of OpenMP where it is false.)
 */
#define KTRT_UNDEFERRED 0x2u
/*
 * All tasks that this one makes, by whichever call, are undeferred, and so are those
 * that they make.  (The clause "final".)  Nodes of a graph are left to others all
 * the same.
 */
#define KTRT_FINAL 0x4u
/* Data that the task names by KTRT_IN, KTRT_OUT or KTRT_INOUT is released when its
 * function has returned, no event is left, and children that name it are complete. */
#define KTRT_EARLY_RELEASE 0x8u

/**
 * struct ktrt_attr - what a task may be told
 *
 * Set @struct_size by KTRT_ATTR_INIT.
 */
struct ktrt_attr {
	size_t struct_size;
	const struct ktrt_dep *deps; /*  none; read during the call only */
	size_t nr_deps;
	size_t arg_bytes; /*             0: pass @arg itself; else copy so much */
	struct ktrt_group *group; /*     none */
	int priority; /*                 0; higher first; -32768 to 32767 */
	int node; /*                     -1: any; NUMA node to prefer */
	unsigned flags; /*               0 */
	unsigned reserved[3]; /*         must be 0 */
	/*
	 * NULL: copies arg_bytes.  Else it moves an object of so many to @to,
	 * so that none is left at @from; if the task cannot be made then, back.
	 * The task's function destroys it, so that is called even if its group
	 * was cancelled; see ktrt_cancelled().
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

/* ktrt_dispatch - for tasks that do different things: calls the ktrt_func that @arg
 * begins with; that some were brief says nothing of others (see "Locks") */
KTRT_API int ktrt_dispatch(void *arg);

/*
 * ktrt_spawn_begin - the same in two steps, without a copy
 * @flags: 0, KTRT_ALWAYS
 *
 * Return: memory for the argument of the task, 64 bytes, aligned to 16, which the caller
 * fills in and passes to ktrt_spawn_end() with the same function, and without another
 * call of this header in between; NULL: not so, but another may make it or say why not.
 */
KTRT_API void *ktrt_spawn_begin(ktrt_func func, size_t bytes, unsigned flags);
KTRT_API void ktrt_spawn_end(ktrt_func func, void *arg);

/**
 * ktrt_spawn_attr - make a task with dependences, a priority, a group
 *
 * Return: 0, -ESRCH, -ENOMEM, -EINVAL: unknown flags or mode, non-zero reserved
 * fields, a priority or range out of bounds; data that the caller has released; data
 * that this task would write, where the caller names it weakly or with
 * KTRT_EARLY_RELEASE and only reads it; a group of an earlier runtime; -E2BIG.
 */
KTRT_API int ktrt_spawn_attr(ktrt_func func, void *arg,
			     const struct ktrt_attr *attr);

/**
 * ktrt_release - data is released as if the calling task's function had returned
 * @deps: addr and len as the task was told, by a weak mode or with
 *	KTRT_EARLY_RELEASE; the modes do not matter
 *
 * An undeferred task releases it at its end.
 * Return: 0; -EINVAL: some is not such data, nothing was released; -ENOMEM: what
 * comes first was, the rest will be at the end; -ESRCH: not in a task.
 */
KTRT_API int ktrt_release(const struct ktrt_dep *deps, size_t nr_deps);

/* ktrt_in_final - 1 in a task with KTRT_FINAL and in those below it; else 0 */
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
 * ktrt_wait - until all children of the calling task (or thread) are complete
 *
 * Return: 0, the first code of a child since the last wait, or -ESRCH.
 */
KTRT_API int ktrt_wait(void);

/**
 * ktrt_wait_for - until what children of the caller do to some data is done
 * @deps: as a task would name them: KTRT_IN waits for those that write, others
 *	also for those that read
 *
 * Other children go on; none is done by the caller meanwhile.  Codes go to
 * ktrt_wait().
 *
 * Return: 0, -ECANCELED: the data is spoilt, as a task failed, and stays so; -ESRCH,
 * -ENOMEM; -EINVAL: as ktrt_spawn_attr(), by what the caller has released or only reads,
 * too; KTRT_REDUCTION and weak modes.
 */
KTRT_API int ktrt_wait_for(const struct ktrt_dep *deps, size_t nr_deps);

/**
 * ktrt_yield - let tasks that are ready go first
 *
 * In a task: another worker takes the core for a task, if one is ready.  With max_threads
 * workers none may be left: then the caller may do one itself, as ktrt_yield(3) tells, which
 * must not wait for what the caller does later.
 * Return: 0 or -ESRCH.
 */
KTRT_API int ktrt_yield(void);

/**
 * ktrt_run - do a task on a worker, with all its children, and wait for it
 *
 * May be called by any thread; inside a task it is a spawn and a wait for
 * that one.
 *
 * Return: what the function or, if that was 0, a child returned first; -ESRCH
 * without a runtime; -ENOMEM.
 */
KTRT_API int ktrt_run(ktrt_func func, void *arg);

/* ---- groups: tasks that are waited for or cancelled together ---- */

/* ktrt_group_new - Return: 0, -ENOMEM, -ESRCH */
KTRT_API int ktrt_group_new(struct ktrt_group **group);

/* ktrt_group_wait - until its tasks are complete; their first code, which goes to the
 * group only, and is there in a later runtime, too.  One thread at a time. */
KTRT_API int ktrt_group_wait(struct ktrt_group *group);

/* ktrt_group_cancel - tasks of it that did not start fail with -ECANCELED; any thread */
KTRT_API void ktrt_group_cancel(struct ktrt_group *group);

/* ktrt_group_free - waits first, and drops the code; NULL is fine; must be done even
 * after the runtime.  On a thread that is not attached it may do nothing while that runs. */
KTRT_API void ktrt_group_free(struct ktrt_group *group);

/* ktrt_cancelled - was the calling task's group, or that of a task above it,
 * cancelled, or is what the task reads spoilt? */
KTRT_API int ktrt_cancelled(void);

/* ---- graphs: made once, run often ---- */

/*
 * ktrt_graph_new - Return: 0, -ENOMEM, -ESRCH
 *
 * One thread at a time may add to it, run or free it.  It ends with the
 * runtime: calls return -ESRCH then, but it still must be freed.
 */
KTRT_API int ktrt_graph_new(struct ktrt_graph **graph);

/**
 * ktrt_graph_add - a node: one task of each run of the graph
 * @attr: NULL, or as for ktrt_spawn_attr(), without a group, move, reductions, weak
 *	modes or a flag but KTRT_ALWAYS, and with addresses alone (len 0).
 *	Dependences are between nodes, in the order in which they were added, also
 *	of those that commute.  A copy (arg_bytes) is made here, once.
 *
 * Return: the node's number, from 0 on; -EINVAL, -E2BIG, -ESRCH; -EBUSY: it
 * runs; -ENOMEM: if that was for an edge the graph can only be freed.
 */
KTRT_API int ktrt_graph_add(struct ktrt_graph *graph, ktrt_func func, void *arg,
			    const struct ktrt_attr *attr);

/**
 * ktrt_graph_edge - node @after starts when node @before is complete
 *
 * It is skipped in a run in which that fails.  @before must be the lower number, so
 * there are no cycles.
 * Return: 0, -EINVAL, -EBUSY, -ENOMEM (as above), -ESRCH.
 */
KTRT_API int ktrt_graph_edge(struct ktrt_graph *graph, int before, int after);

/**
 * ktrt_graph_run - do each node once, and wait until all are complete
 *
 * A node's predecessors are counted and nothing is looked up: a node costs
 * less than a task with dependences.  The nodes belong to the groups of the
 * calling task and those above it as its children do.
 *
 * Return: 0, or the first code of a node; -EBUSY: it runs; -ENOMEM, -ESRCH.
 */
KTRT_API int ktrt_graph_run(struct ktrt_graph *graph);

/* ktrt_graph_free - does nothing while the graph runs: free it again afterwards; NULL is fine */
KTRT_API void ktrt_graph_free(struct ktrt_graph *graph);

/* ---- loops ---- */

/* ktrt_range_func - does what is to be done for [first, end); as ktrt_func */
typedef int (*ktrt_range_func)(size_t first, size_t end, void *arg);

/**
 * ktrt_for - call @func for all of [first, end) by parts, and wait
 * @grain: indices a call, but for the last of a part; 0: as many as take some
 *	20 us, which is measured
 *
 * Parts are made as long as workers want some.  After a code that is not 0, or
 * when the caller's group is cancelled, no other call is begun.
 * May be called by any thread, as ktrt_run().
 *
 * Return: 0, the first code, -ECANCELED, -ESRCH, -ENOMEM.
 */
KTRT_API int ktrt_for(size_t first, size_t end, size_t grain,
		      ktrt_range_func func, void *arg);

/* ktrt_reduce_func - adds what [first, end) comes to, to the right of @value */
typedef int (*ktrt_reduce_func)(size_t first, size_t end, void *value,
				void *arg);
/* ktrt_combine_func - adds @from to the right of @into; called for each copy of
 * the neutral value, also after a failure */
typedef int (*ktrt_combine_func)(void *into, void *from, void *arg);

/**
 * ktrt_reduce - the same with a value
 * @value: @bytes of it: before, the neutral one, of which each part has a copy;
 *	then what all of the range comes to
 *
 * The order of the range is kept, so @combine need be associative only.  Where
 * parts meet differs from call to call, which sums of floating point show.
 */
KTRT_API int ktrt_reduce(size_t first, size_t end, size_t grain,
			 ktrt_reduce_func func, ktrt_combine_func combine,
			 void *value, size_t bytes, void *arg);

/* ---- codes that stand for an object, as an exception ---- */

/* Codes from here on are those of ktrt_code_new(). */
#define KTRT_CODE_FIRST 0x70000000u

/**
 * ktrt_code_new - a code that takes an object to whoever waits
 * @kind: what it is, for ktrt_code_take(); must stay
 * @drop: lets go of it: called once, by any thread, if the code was not the
 *	first, or nobody got it
 *
 * A task returns the code.  Whoever gets it from a call takes the object, drops
 * the code or, in a task, returns it.  Needs no runtime.
 *
 * Return: the code, -EINVAL, -ENOMEM: the object is still the caller's.
 */
KTRT_API int ktrt_code_new(const char *kind, void *object,
			   void (*drop)(void *object));

/* ktrt_code_take - the object, which is the caller's then; NULL: the code has
 * none, or of another kind */
KTRT_API void *ktrt_code_take(int code, const char *kind);

/* ktrt_code_drop - let go of its object, if it has one */
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
	unsigned max_children; /* 0: 8192; a task that made so many waits */
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
 * One runtime a process.  The environment narrows what the program left open:
 * KTRT_WORKERS, and KTRT_UMT=0.  KTRT_TRACE and KTRT_DOT name files for what
 * tasks did; see ktrt_start(3).  Of cores no more are used than max_threads
 * has workers for.
 *
 * Return: 0, -EBUSY when it runs, -EINVAL (also KTRT_FOLLOW with one thread),
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

/* ktrt_detach - wait as ktrt_wait() does, then the opposite */
KTRT_API int ktrt_detach(void);

/* ---- what is going on ---- */

/** What the runtime is, and what it did.  Set @struct_size by KTRT_INFO_INIT. */
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
	uint64_t replaced; /* of these, as the core's worker was blocked */
	uint64_t surrenders; /* a worker left as two were ready on its core */
	uint64_t samples; /* cores that were looked at, */
	uint64_t overloaded; /* and had more than one worker ready */
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
 * From a thread that is neither a worker nor attached this, ktrt_thread_indices() and
 * ktrt_cpus() wait while another thread starts or ends the runtime, attaches or detaches.
 */
KTRT_API int ktrt_info_get(struct ktrt_info *info);

/* ktrt_worker - the number of the calling worker's core, from 0; -1 elsewhere */
KTRT_API int ktrt_worker(void);

/*
 * ktrt_thread_index - the number of the calling worker or attached thread, or -1
 *
 * No two threads have the same at a time, also where several share a core; and a
 * task keeps it, as it stays with its thread.  Where a task waits others run on its
 * thread meanwhile.  Below ktrt_thread_indices(), which is fixed (-ESRCH).
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
