/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* length: one header has all that a program needs, and the glossary */
/*
 * ktask: do one big job with several threads.
 *
 * A job is a range of work that one thread would otherwise do alone while
 * the other CPUs idle.  ktask divides it into chunks.  The calling thread and
 * helper threads of the lowest priority do them.  If a chunk fails, ktask
 * undoes exactly what was done.
 *
 * Glossary, for this header and for the code behind it
 *  A job
 *   job         all of the work: [start, start + size)
 *   unit        what the size counts: bytes, pages, items; the client decides
 *   range       a part of a job that belongs to one node
 *   chunk       the part of a job that one call of the thread function does
 *   caller      the thread that asked for the job; it always works itself
 *   helper      a thread of the pool that is added to the job
 *   worker      a thread that takes chunks: the caller or a helper
 *   nested      of a job: asked for inside a chunk of another, its outer job
 *   detached    of a job: started, and nobody waits for it yet
 *   orphan      a job in the child of a fork, where its helpers do not exist
 *   undo        give back what successful chunks of a failed job did
 *   claim       take the next chunk of a range; split: decide how large it is
 *   deal        send a helper to a range; redeal: to another one before it begins
 *   settled     of a job: nothing is left to claim, and no helper is in a chunk
 *  Adding helpers
 *   host        what runs the engine: user space, the kernel, the simulation
 *   pool        the helpers of a process, and those that idle
 *   work item   what one helper is submitted for, in one job
 *   submit      hand a work item to an idle helper
 *   cancel      take back a work item that no helper has begun
 *   lend        give a helper that is waited for the caller's priority
 *   low         of a helper: at the lowest priority, SCHED_IDLE and nice 19
 *   park        of a helper: spin briefly for a work item, then sleep
 *   preferred   of CPUs: those that a helper shall begin on
 *   starved     of a work item: none of its preferred CPUs took it in time
 *   stuck       of a helper: in a chunk whose end is not in sight
 *   generation  counts changes after which something known is out of date
 *  How many
 *   cap         the most helpers that a node or the machine may run
 *   budget      the most helpers of a job and all jobs nested in it
 *   permit      the right to run one helper, under a cap
 *   yield       let another helper run while one that has a permit gets no CPU
 *   registry    a file in shared memory with the permits of one user and an entry
 *               for each job: what it wants, and what it has done
 *   share       the helpers that a job may have beside other jobs and users
 *   capacity    the most threads that a node, a control group or idle CPUs can run
 *   overload    a time in which more threads run than there are CPUs, so that
 *               helpers get none
 *   tick        a moment between two chunks at which the caller may adapt the job
 *   refresh     read anew what may have changed; poll: check until it has
 *   pace        how often a job ticks and refreshes
 *   steal       of a host: run other work on the CPU of a virtual machine
 *  How many pay
 *   rate        units that a job does in a given time
 *   epoch       a fixed time over which the rate is measured; window: the same for
 *               a job that blocks, but as long as some chunks take
 *   trial       an epoch or window with another number of threads
 *   probe       a short trial of far fewer threads
 *   ramp        how a long job of many threads begins: with one, then four times as
 *               many at each step while they pay
 *   outlier     a rate that is far from the mean
 *   cooldown    a time after a change in which outliers are ignored
 *   tune        find out, while a job runs, how many threads pay; `ktask tune`
 *               measures that beforehand and keeps it in the autotune cache
 *   history     what a process keeps from one job for the next of the same kind
 *  Threads that block
 *   I/O concurrency        threads that shall be in chunks, running or blocked
 *   target concurrency     threads that shall run
 *   compensating helper    a helper that runs in place of a blocked thread
 *   concurrency manager    the helper that submits compensating helpers
 *   stalled                of a thread: in one chunk for long
 *   thread sample          which threads of a job run, at one moment
 *  Where
 *   node        a NUMA node
 *   topology    nodes, their CPUs and distances, cores and siblings
 *   placement   the choice of a range and of CPUs for a helper
 *
 * Conventions
 *   Every range is [start, end).  Every call returns 0 or a negative errno;
 *   a non-zero value that the client's own thread function returned is passed
 *   through unchanged.  Getting no helper is not an error: the caller then
 *   does all of the work.  The library never prints and never exits.
 *   errno is preserved by every call.
 *   A structure that begins with its size may come from a program that was
 *   built with an older or a newer header.  Fields that a shorter one lacks are
 *   read as zero.  A longer one is accepted if its unknown fields are zero.
 *   Otherwise the call returns -E2BIG, also for a size above 4096 bytes, and
 *   -EINVAL if a required field is missing.  A structure that the library fills
 *   is filled up to its size; unknown fields become zero.  Of an array of such
 *   structures the size of the first one counts for all.  Other structures never
 *   change, and say so.
 *
 * Context
 *   Any thread may call any function, from several threads at once and from
 *   inside a chunk (a nested job shares the budget of the job around it).
 *   No function may be called from a signal handler.  A thread function must
 *   not leave by longjmp, pthread_exit or an exception.  The library needs
 *   32 KiB of the calling thread's stack, besides what the program's own
 *   functions take.
 */
#ifndef KTASK_KTASK_H
#define KTASK_KTASK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KTASK_API __attribute__((visibility("default")))
#else
#define KTASK_API
#endif

#ifndef NUMA_NO_NODE
#define NUMA_NO_NODE (-1)
#endif

/**
 * ktask_thread_func - do one chunk
 * @start: first position of the chunk
 * @end: position behind the last one
 * @arg: func_arg of the control block
 *
 * Runs in the caller and in helpers, several at once on distinct chunks.
 * Helpers have every asynchronous signal blocked and a stack of 256 KiB.
 *
 * Return: 0, or any other value to stop the job.  A chunk that fails cleans
 * up after itself: the undo function is never called for it.
 */
typedef int (*ktask_thread_func)(void *start, void *end, void *arg);

/**
 * ktask_undo_func - undo what successful chunks did
 * @start: first position
 * @end: position behind the last one
 * @arg: func_arg of the control block
 *
 * Called by one thread (the caller) once the job has failed and every chunk
 * has ended, in ascending order, over ranges that together cover exactly the
 * chunks that succeeded, each position once.  One range may span many chunks.
 * Undo cannot fail.
 */
typedef void (*ktask_undo_func)(void *start, void *end, void *arg);

/**
 * ktask_iter_func - advance a position
 * @position: where the next chunk starts
 * @size: how many units the chunk shall have
 *
 * For work whose positions are not addresses: lists, trees, tables of unknown
 * density.  Called by one thread at a time per range.  Positions must be
 * distinct within a job.
 *
 * Return: the position @size units further; what it returns for the last
 * units of the job is only ever passed on as an end.
 */
typedef void *(*ktask_iter_func)(void *position, size_t size);

/**
 * struct ktask_progress - progress of a job, as a snapshot
 *
 * For a progress function the library sets @struct_size.  If the program's header
 * is newer than the library, fields beyond that size are not there.  For
 * ktask_poll() the program sets it, by KTASK_PROGRESS_INIT.
 */
struct ktask_progress {
	size_t struct_size;
	uint64_t units_done;
	uint64_t units_total;
	uint64_t elapsed_ns;
	uint64_t remaining_ns; /* estimate at the present rate; 0 unknown */
	unsigned threads; /* working now, the caller included */
};

#define KTASK_PROGRESS_INIT                                  \
	{                                                    \
		.struct_size = sizeof(struct ktask_progress) \
	}

/**
 * ktask_progress_func - see progress, and stop the job if need be
 * @progress: valid during the call only
 * @arg: progress_arg of the control block
 *
 * Called by the caller between two of its chunks, at most every progress_ms,
 * and once when the job has ended.
 *
 * Return: 0 to go on; anything else cancels the job (-ECANCELED).
 */
typedef int (*ktask_progress_func)(const struct ktask_progress *progress,
				   void *arg);

/** What one node contributed to a job.  Never changes, because struct ktask_result
 * contains an array of it.  More facts would be a second array there. */
struct ktask_node_result {
	int nid; /* NUMA_NO_NODE: ranges that belong to no node */
	uint64_t chunks; /* chunks of this node's ranges */
	uint64_t units; /* and their units */
	uint64_t remote_chunks; /* of these, done by a thread of another node */
};

#define KTASK_RESULT_NODES 8

/**
 * struct ktask_result - what a job did and cost
 *
 * Filled by the call that ends the job.  Set @struct_size by
 * KTASK_RESULT_INIT.
 */
struct ktask_result {
	size_t struct_size;
	int error; /* what the job returned: the first error in time */
	int fail_error; /* the error at fail_pos */
	void *fail_pos; /* lowest failing position; see ktask_fail_at() */
	size_t fail_offset; /* the same as units from the start of its range */
	size_t fail_range; /* which range of ktask_run_numa() that was */
	unsigned threads; /* that did at least one chunk; the caller counts */
	unsigned
		helpers_lent; /* helpers that were lent the caller's priority */
	uint64_t chunks; /* chunks that succeeded */
	uint64_t units; /* units that succeeded (before any undo) */
	uint64_t wall_ns;
	uint64_t cpu_ns; /* of the caller and the helpers, in this job */
	uint64_t tail_ns; /* from the caller's last chunk to the job's end */
	unsigned nr_nodes; /* entries of nodes[] in use */
	struct ktask_node_result nodes[KTASK_RESULT_NODES];
	uint64_t largest_chunk; /* units of the largest that succeeded */
};

#define KTASK_RESULT_INIT                                  \
	{                                                  \
		.struct_size = sizeof(struct ktask_result) \
	}

/* ktask_ctl.flags: begin with max_threads and stay with them, as far as policy
 * allows, instead of finding out how many pay. */
#define KTASK_FIXED 0x1u
/* ktask_ctl.flags: chunks wait in the kernel, for devices or other threads.
 * Compensating helpers join from the first chunk on, and not only when threads
 * have waited. */
#define KTASK_BLOCKS 0x2u

/**
 * struct ktask_ctl - how to do a job
 *
 * Made by DEFINE_KTASK_CTL() or ktask_ctl_init(), changed by the setters.
 * The library only reads it, so that one control block may serve many jobs,
 * also at once.
 */
struct ktask_ctl {
	size_t struct_size; /* sizeof(struct ktask_ctl) */
	ktask_thread_func thread_func;
	void *func_arg;
	size_t min_chunk_size; /* units; a chunk is never smaller */

	/* optional                              default */
	ktask_undo_func undo_func; /*            none */
	ktask_iter_func iter_func; /*            ktask_iter_range */
	size_t align; /*                         1: chunk edges anywhere */
	unsigned max_threads; /*                 0: the engine decides */
	unsigned flags; /*                       0; KTASK_FIXED, _BLOCKS */
	uint64_t
		deadline_ns; /*                 0: none; from the job's start */
	ktask_progress_func progress_func; /*    none */
	void *progress_arg;
	unsigned progress_ms; /*                 0: every 100 ms */
	unsigned
		chunk_us; /*                    0: measured, or 1000 us a chunk */
	const void *cpus; /*                     caller's mask; a cpu_set_t */
	size_t cpus_size; /*                     bytes of *cpus */
	struct ktask_result *result; /*          none */
	const char *name; /*                     "job"; for ktask_jobs() */
	uint64_t reserved[4]; /*                 must be 0 */
};

/* clang-format off */
#define KTASK_CTL_INITIALIZER(func, arg, min_chunk)                        \
	{ sizeof(struct ktask_ctl), (func), (arg), (min_chunk),            \
	  /* undo, iter, align, threads, flags, deadline, progress (3) */  \
	  0, 0, 0, 0, 0, 0, 0, 0, 0,                                       \
	  /* chunk_us, cpus (2), result, name, reserved */                 \
	  0, 0, 0, 0, 0, { 0, 0, 0, 0 } }
/* clang-format on */

#define DEFINE_KTASK_CTL(name, func, arg, min_chunk) \
	struct ktask_ctl name = KTASK_CTL_INITIALIZER(func, arg, min_chunk)

/** ktask_ctl_init - DEFINE_KTASK_CTL() for a control block elsewhere */
static inline void ktask_ctl_init(struct ktask_ctl *ctl, ktask_thread_func func,
				  void *arg, size_t min_chunk)
{
	struct ktask_ctl fresh = KTASK_CTL_INITIALIZER(func, arg, min_chunk);

	*ctl = fresh;
}

static inline void ktask_ctl_set_undo_func(struct ktask_ctl *ctl,
					   ktask_undo_func undo)
{
	ctl->undo_func = undo;
}

static inline void ktask_ctl_set_iter_func(struct ktask_ctl *ctl,
					   ktask_iter_func iter)
{
	ctl->iter_func = iter;
}

/** ktask_ctl_set_max_threads - the caller counts: 1 means no helper at all */
static inline void ktask_ctl_set_max_threads(struct ktask_ctl *ctl,
					     unsigned max_threads)
{
	ctl->max_threads = max_threads;
}

/** ktask_ctl_set_fixed_threads - for measuring: @threads from start to end, as far
 * as policy allows; 0: all that policy allows */
static inline void ktask_ctl_set_fixed_threads(struct ktask_ctl *ctl,
					       unsigned threads)
{
	ctl->max_threads = threads;
	ctl->flags |= KTASK_FIXED;
}

/** ktask_ctl_set_blocks - say that chunks wait in the kernel: KTASK_BLOCKS */
static inline void ktask_ctl_set_blocks(struct ktask_ctl *ctl)
{
	ctl->flags |= KTASK_BLOCKS;
}

/** ktask_ctl_set_align - edges inside the job fall on multiples of @align */
static inline void ktask_ctl_set_align(struct ktask_ctl *ctl, size_t align)
{
	ctl->align = align;
}

/**
 * ktask_ctl_set_deadline - claim no chunk later than @ns after the start
 *
 * Chunks that have begun are finished.  Then the job fails with -ETIMEDOUT, and
 * is undone like any failed job.
 */
static inline void ktask_ctl_set_deadline(struct ktask_ctl *ctl, uint64_t ns)
{
	ctl->deadline_ns = ns;
}

static inline void ktask_ctl_set_progress(struct ktask_ctl *ctl,
					  ktask_progress_func func, void *arg,
					  unsigned every_ms)
{
	ctl->progress_func = func;
	ctl->progress_arg = arg;
	ctl->progress_ms = every_ms;
}

/** ktask_ctl_set_chunk_us - how long a chunk shall take, in microseconds */
static inline void ktask_ctl_set_chunk_us(struct ktask_ctl *ctl, unsigned us)
{
	ctl->chunk_us = us;
}

/** ktask_ctl_set_cpus - helpers run only on those of @cpus (a cpu_set_t) on which
 * the caller may run too; if there are none, there are no helpers */
static inline void ktask_ctl_set_cpus(struct ktask_ctl *ctl, const void *cpus,
				      size_t size)
{
	ctl->cpus = cpus;
	ctl->cpus_size = size;
}

static inline void ktask_ctl_set_result(struct ktask_ctl *ctl,
					struct ktask_result *result)
{
	ctl->result = result;
}

/** ktask_ctl_set_name - what ktask_jobs() calls the job; 15 characters are kept.
 * A job begins with what was measured for its name: see ktask_autotune_get() */
static inline void ktask_ctl_set_name(struct ktask_ctl *ctl, const char *name)
{
	ctl->name = name;
}

/** A range of work that belongs to a node.  Never changes, because programs pass
 * arrays of it. */
struct ktask_node {
	void *start;
	size_t task_size; /* 0: nothing to do here */
	int nid; /* NUMA_NO_NODE: any node */
};

/** An asynchronous job; opaque. */
struct ktask_job;

/**
 * ktask_iter_range - the default iterator: positions are addresses
 */
KTASK_API void *ktask_iter_range(void *position, size_t size);

/**
 * ktask_run - do a job with the caller and helpers, and wait for it
 * @start: first position
 * @task_size: units of work; 0 does nothing and succeeds
 * @ctl: how to do it
 *
 * Context: sleeps.  Thread cancellation is put off until the job has ended.
 * fork() inside a chunk is allowed.  In the child the job ends with -ECANCELED
 * and is not undone; the child can use the library.  A child that is forked in
 * a helper's chunk inherits the helper's signal mask, priority, CPUs and name.
 * If the chunk returns there, the child ends with exit(0).
 *
 * Return: 0; what a chunk returned, of several the first in time; -ETIMEDOUT;
 * -ECANCELED by the progress function.  Or, before anything ran,
 * -EINVAL: thread_func is NULL, min_chunk_size is 0, @task_size runs past the
 * end of the address space, align is not a power of two, flags are unknown or
 * reserved fields are not zero; -E2BIG: the control block sets fields that this
 * library does not know, or the result has more than 4096 bytes.
 */
KTASK_API int ktask_run(void *start, size_t task_size,
			const struct ktask_ctl *ctl);

/**
 * ktask_run_numa - ktask_run() over ranges that belong to nodes
 * @nodes: the ranges, @nr_nodes of them; several may name the same node
 *
 * A thread takes chunks of its own node first, then of the nearest node that
 * has work left.  Units count over all ranges together.
 *
 * The helpers of a range run on the CPUs of its node.  If the caller may use none
 * of these, they run on those of the nearest node of which it may.  Ranges of no
 * node are served from the caller's node.  If the cap of a node is reached, further
 * helpers come from anywhere.
 *
 * Return: as ktask_run().  Also, before anything ran, -ENOMEM: there is no memory
 * for more than 8 ranges; -EINVAL: the array is NULL with @nr_nodes > 0, or a node is
 * below NUMA_NO_NODE.  A node that does not exist counts as any node.
 */
KTASK_API int ktask_run_numa(const struct ktask_node *nodes, size_t nr_nodes,
			     const struct ktask_ctl *ctl);

/**
 * ktask_start - begin a job and return at once
 * @job: set to the job; on failure to NULL
 *
 * Helpers begin at once; the thread that calls ktask_wait() joins them.  If there
 * is no helper, the work begins in ktask_wait().  @ctl is copied; what it points
 * to (argument, result, CPU mask) must live until ktask_wait() returns.  Each
 * started job must be waited for once.
 *
 * Return: 0, -EINVAL and -E2BIG as ktask_run(), or -ENOMEM.
 */
KTASK_API int ktask_start(struct ktask_job **job, void *start, size_t task_size,
			  const struct ktask_ctl *ctl);

/** ktask_start_numa - ktask_run_numa(), begun as ktask_start() does */
KTASK_API int ktask_start_numa(struct ktask_job **job,
			       const struct ktask_node *nodes, size_t nr_nodes,
			       const struct ktask_ctl *ctl);

/**
 * ktask_wait - work on a started job until it ends, and free it
 *
 * Return: what ktask_run() would have returned; -ECANCELED after
 * ktask_cancel(), unless the job had ended before; -EINVAL for NULL.
 */
KTASK_API int ktask_wait(struct ktask_job *job);

/**
 * ktask_cancel - let a started job claim no more chunks
 *
 * Returns at once.  The job must still be waited for: ktask_wait() undoes it.  Any
 * thread may call this, also from inside a chunk, as long as ktask_wait() has not
 * returned.
 */
KTASK_API void ktask_cancel(struct ktask_job *job);

/**
 * ktask_poll - see whether a started job has ended, and its progress
 * @progress: NULL, or filled
 *
 * Return: 0 when ktask_wait() would return without working or sleeping,
 * -EINPROGRESS before that; -EINVAL for a NULL job; -EINVAL, -E2BIG for the size of
 * @progress.
 */
KTASK_API int ktask_poll(struct ktask_job *job,
			 struct ktask_progress *progress);

/**
 * ktask_fail_at - say where inside its chunk a thread function failed
 * @position: in the chunk; used for fail_pos if the function then fails
 *
 * Without it the chunk's start is reported.  Has no effect outside a chunk.
 */
KTASK_API void ktask_fail_at(void *position);

/**
 * ktask_trim - end idle helpers and wait until they are gone
 *
 * For programs that must be single-threaded for a moment, as unshare(2) and
 * setns(2) demand.  The next job starts helpers again.
 *
 * Return: number of helpers that ended.
 */
KTASK_API unsigned ktask_trim(void);

/** One thing that limits the threads of a job. */
struct ktask_limit {
	size_t struct_size; /* KTASK_LIMIT_INIT; in an array of the first one */
	const char *name; /* "cpus", "affinity", "cap", "env", ...; static */
	unsigned threads; /* most threads it allows, the caller included */
	char why[120]; /* for people */
};

#define KTASK_LIMIT_INIT                                  \
	{                                                 \
		.struct_size = sizeof(struct ktask_limit) \
	}

/**
 * ktask_limits - what would limit a job that is started now, and why
 * @limits: filled, @nr entries at most
 *
 *	struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
 *	int nr = ktask_limits(limits, 32);
 *
 * Return: the number of limits there are, which may exceed @nr; -EINVAL, -E2BIG for
 * the size of @limits.  A job gets the least of them.
 */
KTASK_API int ktask_limits(struct ktask_limit *limits, unsigned nr);

/**
 * ktask_others_work - say that other threads of this process work
 * @change: how many more CPUs they keep busy; negative: how many fewer
 *
 * For thread pools and task runtimes that also run jobs: their threads and
 * helpers of jobs share one budget.  A job gets one thread for each CPU that is
 * not kept busy, and its caller; the caller counts as one of those other threads.
 * Running jobs follow a change within milliseconds.  A forked child keeps the count.
 */
KTASK_API void ktask_others_work(int change);

/** A job that runs on this machine now. */
struct ktask_job_info {
	size_t struct_size; /* KTASK_JOB_INFO_INIT; in an array of the first one */
	int pid; /* as its own PID namespace counts */
	unsigned uid;
	char name[16];
	/* At work: those that have a permit, and those in place of blocked
	 * threads, which need none. */
	unsigned helpers;
	unsigned wanted; /* helpers that it would take */
	uint64_t units_done;
	uint64_t units_total;
	uint64_t elapsed_ns;
	uint64_t remaining_ns; /* estimate; 0 unknown */
};

#define KTASK_JOB_INFO_INIT                                  \
	{                                                    \
		.struct_size = sizeof(struct ktask_job_info) \
	}

/** Helpers of this user, and how many the machine allows. */
struct ktask_permits_info {
	size_t struct_size; /* KTASK_PERMITS_INFO_INIT */
	/* At one moment, and at most limit.  Helpers that have yielded their
	 * permit, and only finish their chunk, do not count. */
	unsigned used;
	unsigned limit;
	int shared; /* 0: this process could not join the shared registry */
	int cut; /* 1: somebody has filled /dev/shm, and jobs may be missing */
};

#define KTASK_PERMITS_INFO_INIT                                  \
	{                                                        \
		.struct_size = sizeof(struct ktask_permits_info) \
	}

/**
 * ktask_jobs - jobs of all processes and users that use more than one thread
 * @jobs: filled, @nr entries at most
 * @permits: NULL, or filled
 *
 * A job writes what it does every few milliseconds; while its caller is in a
 * longer chunk, the job is left out.  What other users' jobs write cannot be
 * verified.  Anybody may fill /dev/shm, so at most 65536 names are read there, and
 * at most 1024 names of registries; cut in @permits says whether there were more.
 *
 * Return: the number of jobs there are, which may exceed @nr; -EINVAL, -E2BIG for the
 * size of @jobs or @permits.
 */
KTASK_API int ktask_jobs(struct ktask_job_info *jobs, unsigned nr,
			 struct ktask_permits_info *permits);

/**
 * struct ktask_autotune - what was measured for jobs of one name on this machine
 *
 * Each operation of the library is a job of that name.  A file of the user keeps
 * this for later processes.  Only ktask_autotune_put() writes the file, for `ktask
 * tune`.  See ktask_autotune_get(3).  Set @struct_size by KTASK_AUTOTUNE_INIT.
 */
struct ktask_autotune {
	size_t struct_size;
	char name[16]; /* letters, digits, '.', '_', '-' */
	unsigned threads; /* the best count, the caller included; to 4095 */
	unsigned max_threads; /* that were allowed when it was measured */
	unsigned chunk_us; /* the best time for a chunk; 0: the usual one */
	uint64_t single_rate; /* units a second of one thread; 0 unknown */
};

#define KTASK_AUTOTUNE_INIT                                  \
	{                                                    \
		.struct_size = sizeof(struct ktask_autotune) \
	}

/**
 * ktask_autotune_get - what a job called @name would begin with
 *
 * Return: 0; -ENOENT: nothing is known; -EINVAL: not a valid name; -E2BIG.
 */
KTASK_API int ktask_autotune_get(const char *name,
				 struct ktask_autotune *tuned);

/**
 * ktask_autotune_put - keep @tuned, for this process from now on and for later ones
 * @path: NULL, or filled with the name of the file, @size bytes at most
 *
 * Jobs that run already are not changed.
 *
 * Return: 0; -EINVAL; -E2BIG; the error of writing the file: -EBUSY if another process
 * held it for two seconds, -ENOENT if there is no directory for it, or another one.
 */
KTASK_API int ktask_autotune_put(const struct ktask_autotune *tuned, char *path,
				 size_t size);

/**
 * ktask_autotune_verify - could ktask_autotune_put() write the file?
 * @path: as of ktask_autotune_put()
 *
 * Call it before a long measurement.  It creates and writes nothing.
 *
 * Return: 0, or the error that ktask_autotune_put() would return, as far as that is
 * known beforehand.
 */
KTASK_API int ktask_autotune_verify(char *path, size_t size);

/**
 * ktask_version - version of the library at run time, "MAJOR.MINOR.PATCH"
 */
KTASK_API const char *ktask_version(void);

#ifdef __cplusplus
}
#endif

#endif /* KTASK_KTASK_H */
