/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The one runtime of the process: starting and ending it, attaching threads,
 * what a fork leaves of it, and what it tells about itself.
 *
 * Locking: rt.h; runtime_lock is its G.  The runtime does not end while there is a worker
 * or an attached thread.  So these read it without the lock, and other threads with it.
 */
#include <errno.h>
#include <linux/rseq.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "access_arrays.h"
#include "dependences.h"
#include "env_number.h"
#include "trace.h"
#include "common/struct_size.h"

#define THREADS_MAX 4096
#define WORKERS_MAX 65535
#define THREADS_PER_CORE 8
#define THREADS_LEAST 64
#define ATTACHED_LEAST 64
#define SPIN_US 50
#define CHILDREN_MAX 8192
/* UMT is paused once all workers have slept for so long. */
#define REST_AFTER_NS 500000000
/* A trial takes a thread, some 0.2 ms, and saves some 50 ns a task: see child_limit.c. */
#define TRIAL_AFTER 4096

struct runtime rt;

static pthread_mutex_t runtime_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;
/* Its destructor detaches threads that end; constant once made. */
static pthread_key_t ended_key;
static bool has_ended_key;
/* How often a thread was detached, and the threads that wait until one is; A */
static uint32_t nr_detached, nr_waiting;

/* ---- forks ---- */

/* The child has no threads of the runtime, and locks may be held: it uses none of this again. */
static void in_child(void)
{
	self_worker = NULL;
	if (rt_runs())
		park_forget();
	at_store(&rt.runs, 0);
	at_store(&rt.generation, rt.generation + 1);
	at_store(&nr_waiting, 0);
	pthread_mutex_init(&runtime_lock, NULL);
	codes_after_fork();
	groups_after_fork();
}

/* The thread ends while it is attached.  If it ended in the middle of a task, what it waited
 * for has been given back, and it is outside of tasks again.  It runs none here: its
 * variables are gone, and a task that ended the thread would leave it attached. */
static void detach_ended(void *worker)
{
	struct worker *w = worker;

	if (w != self_worker)
		return;
	w->stack_least = UINTPTR_MAX;
	w->stack_usable = 0;
	ktrt_code_drop(ktrt_detach());
}

static void prepare_process(void)
{
	pthread_atfork(codes_before_fork, codes_after_fork, in_child);
	has_ended_key = !pthread_key_create(&ended_key, detach_ended);
}

/* Without memory for that the thread itself must detach. */
static void note_attached(struct worker *w)
{
	self_worker = w;
	if (has_ended_key)
		(void)pthread_setspecific(ended_key, w);
}

/* ---- starting ---- */

static bool options_are_valid(const struct ktrt_options *options)
{
	if (options->flags &
	    ~(KTRT_NO_UMT | KTRT_FOLLOW | KTRT_UNBOUND | KTRT_UMT_FIRST))
		return false;
	if (options->cpus && !options->cpus_size)
		return false;
	if (options->max_threads > THREADS_MAX)
		return false;
	/* The leader would have nobody to lead. */
	if (options->max_threads == 1 && options->flags & KTRT_FOLLOW)
		return false;
	for (size_t i = 0; i < sizeof(options->reserved) / sizeof(unsigned);
	     i++)
		if (options->reserved[i])
			return false;
	return true;
}

/* As with ktask's variables, a value that is no whole number is ignored. */
static unsigned env_number(const char *name)
{
	const char *text = secure_getenv(name);
	unsigned long number;

	if (!text || !env_is_number(text))
		return 0;
	number = strtoul(text, NULL, 10);
	return number < WORKERS_MAX ? (unsigned)number : WORKERS_MAX;
}

/* The environment narrows what the program left open. */
static void take_environment(struct ktrt_options *options)
{
	const char *umt = secure_getenv("KTRT_UMT");

	if (!options->workers)
		options->workers = env_number("KTRT_WORKERS");
	if (umt && !strcmp(umt, "0"))
		options->flags |= KTRT_NO_UMT;
}

static void fill_in(struct ktrt_options *options)
{
	unsigned most = rt.nr_cores * THREADS_PER_CORE;

	if (most < THREADS_LEAST)
		most = THREADS_LEAST;
	if (most > THREADS_MAX)
		most = THREADS_MAX;
	if (most <= rt.nr_cores)
		most = rt.nr_cores + 1;
	if (!options->max_threads)
		options->max_threads = most;
	if (!options->max_children)
		options->max_children = CHILDREN_MAX;
	if (options->max_children > INT32_MAX / 2)
		options->max_children = INT32_MAX / 2;
	rt.spin_ns = (options->spin_us ? options->spin_us : SPIN_US) * 1000ull;
}

static union mask_line *mask_new(unsigned nr)
{
	size_t bytes = mask_bytes(nr);
	union mask_line *lines = aligned_alloc(CACHE_LINE, bytes);

	if (lines)
		memset(lines, 0, bytes);
	return lines;
}

/* As many threads may be attached as there may be workers, but at least these. */
static unsigned most_attached(void)
{
	return rt.options.max_threads > ATTACHED_LEAST ? rt.options.max_threads
						       : ATTACHED_LEAST;
}

int rt_make_slots(void)
{
	unsigned nr = rt.options.max_threads + most_attached();

	rt.slots_per_cache = (nr + rt.nr_caches - 1) / rt.nr_caches;
	rt.slots_per_cache = (rt.slots_per_cache + 7) & ~7u;
	rt.nr_slots = rt.slots_per_cache * rt.nr_caches;
	rt.workers = calloc(rt.nr_slots, sizeof(struct worker *));
	rt.loaded = mask_new(rt.nr_slots);
	return rt.workers && rt.loaded ? 0 : -ENOMEM;
}

static int start_workers(void)
{
	int error = leader_start();

	if (error)
		return error;
	for (unsigned i = 0; i < rt.nr_cores && !error; i++) {
		at_add(&rt.idlers, IDLERS_SEARCH);
		park_arrive(&rt.cores[i]);
		error = worker_start(&rt.cores[i]);
		if (error) {
			at_sub(&rt.idlers, IDLERS_SEARCH);
			park_arrive_not(&rt.cores[i], NULL);
		}
	}
	if (!error && rt.options.flags & KTRT_FOLLOW)
		error = worker_start(NULL);
	return error;
}

static void stop_threads(void)
{
	at_store_seq(&rt.stop, 1);
	umt_load_stop();
	if (rt.leader_fd < 0)
		return;
	park_wake_all();
	leader_stop();
	park_wake_all();
	worker_join_all();
	while (at_load(&rt.ending))
		sched_yield();
	park_forget();
	close(rt.leader_fd);
}

static void free_all(void)
{
	umt_close(rt.umt);
	worker_free_all();
	pool_destroy(&rt.tasks);
	pool_destroy(&rt.smalls);
	access_arrays_destroy();
	pthread_mutex_destroy(&rt.pool_lock);
	pthread_mutex_destroy(&rt.load_lock);
	free(rt.workers);
	free(rt.loaded);
	cores_free();
}

#if defined(__GLIBC__) && defined(__x86_64__) && defined(__LP64__)
/* glibc has it since 2.35. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

/* Where the kernel writes the CPU that the thread runs on (rseq); NULL: it does not. */
static const uint32_t *own_cpu(void)
{
	const struct rseq *area;
	char *thread;

	if (!&__rseq_size || !__rseq_size)
		return NULL;
	__asm__("mov %%fs:0, %0" : "=r"(thread));
	area = (const struct rseq *)(thread + __rseq_offset);
	return &area->cpu_id;
}
#else
static const uint32_t *own_cpu(void)
{
	return NULL;
}
#endif

/* Pairs with attach_when_possible(): either the count is seen there, or the waiter here. */
static void wake_attaching(void)
{
	at_add(&nr_detached, 1);
	if (at_load_seq(&nr_waiting))
		futex_wake(&nr_detached, 1);
}

static int attach_thread(void)
{
	struct worker *w;

	rt_assert_locked(RANK_START);
	if (at_load(&rt.attached) >= most_attached())
		return -EAGAIN;
	w = worker_new(0);
	if (!w)
		return -ENOMEM;
	at_poke(&w->outer, task_new(w, NULL, NULL));
	if (!w->outer) {
		worker_retire(w);
		return -ENOMEM;
	}
	w->outer->flags = TASK_OUTER;
	w->outer->back = NULL;
	w->on_cpu = own_cpu();
	at_store(&w->tid, (pid_t)syscall(SYS_gettid));
	at_poke(&w->current, w->outer);
	note_attached(w);
	if (rt.trace)
		trace_thread(w);
	at_add(&rt.attached, 1);
	return 0;
}

static void detach_worker(struct worker *w)
{
	rt_assert_locked(RANK_START);
	note_attached(NULL);
	if (w->outer->domain)
		deps_close(w, w->outer);
	if (w->outer->back)
		pool_put(&rt.tasks, &w->tasks, w->outer->back);
	task_free(w, w->outer);
	at_poke(&w->current, NULL);
	at_poke(&w->outer, NULL);
	worker_retire(w);
	at_sub(&rt.attached, 1);
	wake_attaching();
}

/* Clear all fields but those that other threads may read at any time: rt.runs, ->generation
 * and ->starts. */
static void clear_runtime(void)
{
	const size_t kept = offsetof(struct runtime, runs);
	const size_t behind = offsetof(struct runtime, cancels);

	rt_assert_locked(RANK_START);
	memset(&rt, 0, kept);
	memset((char *)&rt + behind, 0, sizeof(rt) - behind);
}

static int begin_runtime(const struct ktrt_options *options)
{
	int error;

	clear_runtime();
	at_store(&rt.starts, rt.starts + 1);
	rt.options = *options;
	take_environment(&rt.options);
	error = cores_read(&rt.options);
	if (error)
		return error;
	fill_in(&rt.options);
	pthread_mutex_init(&rt.pool_lock, NULL);
	pool_init(&rt.tasks, sizeof(struct ktrt_task));
	pool_init(&rt.smalls, sizeof(struct epoch));
	access_arrays_init();
	pthread_mutex_init(&rt.load_lock, NULL);
	rt.rest_after_ns = REST_AFTER_NS;
	rt.trial_after = TRIAL_AFTER;
	rt.plenty = rt.nr_cores > 1 ? QUEUE_PLENTY : QUEUE_PLENTY_ALONE;
	short_tasks_begin();
	rt.leader_fd = -1;
	error = rt_make_slots();
	if (!error)
		trace_start();
	if (!error)
		umt_load_start();
	if (!error)
		error = start_workers();
	if (error) {
		stop_threads();
		trace_stop();
		free_all();
	}
	return error;
}

static void end_runtime(void)
{
	stop_threads();
	at_store(&rt.runs, 0);
	trace_stop();
	free_all();
}

int ktrt_start(const struct ktrt_options *options)
{
	struct ktrt_options own = KTRT_OPTIONS_INIT;
	int error = 0, cancel_state;

	if (options)
		error = struct_size_read(&own, sizeof(own), options,
					 STRUCT_SIZE_ONLY);
	if (error)
		return error;
	if (!options_are_valid(&own))
		return -EINVAL;
	pthread_once(&process_once, prepare_process);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	mutex_take(&runtime_lock, RANK_START);
	error = -EBUSY;
	if (!rt_runs()) {
		error = begin_runtime(&own);
		if (!error)
			at_store(&rt.runs, 1);
		if (!error && (error = attach_thread()))
			end_runtime();
	}
	mutex_drop(&runtime_lock, RANK_START);
	pthread_setcancelstate(cancel_state, NULL);
	return error;
}

int ktrt_attach(void)
{
	int error = -ESRCH;

	mutex_take(&runtime_lock, RANK_START);
	if (rt_runs())
		error = self_worker ? -EEXIST : attach_thread();
	mutex_drop(&runtime_lock, RANK_START);
	return error;
}

static void wait_for_detaching(uint32_t seen)
{
	at_add(&nr_waiting, 1);
	futex_sleep(&nr_detached, seen);
	at_sub(&nr_waiting, 1);
}

int attach_when_possible(void)
{
	uint32_t seen = at_load_seq(&nr_detached);
	int error = ktrt_attach();

	while (error == -EAGAIN) {
		wait_for_detaching(seen);
		seen = at_load_seq(&nr_detached);
		error = ktrt_attach();
		/* It was woken in place of another one, above all if the runtime ended. */
		if (error && error != -EAGAIN)
			wake_attaching();
	}
	return error;
}

int ktrt_detach(void)
{
	struct worker *w = self_worker;
	int error;

	if (!rt_runs() || !w || w->current != w->outer)
		return -ESRCH;
	error = task_wait(w, w->outer);
	mutex_take(&runtime_lock, RANK_START);
	detach_worker(w);
	mutex_drop(&runtime_lock, RANK_START);
	return error;
}

int ktrt_stop(void)
{
	struct worker *w = self_worker;
	int error, cancel_state;

	if (!rt_runs() || !w)
		return -ESRCH;
	if (w->current != w->outer)
		return -EBUSY;
	error = task_wait(w, w->outer);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	mutex_take(&runtime_lock, RANK_START);
	if (at_load(&rt.attached) > 1) {
		/* The next wait of the thread returns it. */
		error_keep(&w->outer->child_error, error);
		error = -EBUSY;
	} else {
		detach_worker(w);
		end_runtime();
	}
	mutex_drop(&runtime_lock, RANK_START);
	pthread_setcancelstate(cancel_state, NULL);
	return error;
}

/* ---- what it tells ---- */

static void add_counts(struct ktrt_info *info, const struct counts *counts)
{
	info->tasks += at_peek(&counts->tasks);
	info->steals += at_peek(&counts->steals);
	info->parks += at_peek(&counts->parks);
	info->wakeups += at_peek(&counts->wakeups);
	info->replaced += at_peek(&counts->replaced);
	info->surrenders += at_peek(&counts->surrenders);
}

/*
 * Is there a runtime?  If so it is not stopped before release_runtime().  A thread of the
 * runtime needs no lock for that, because the runtime does not end before its threads.
 */
static bool hold_runtime(void)
{
	if (!self_worker)
		mutex_take(&runtime_lock, RANK_START);
	return rt_runs();
}

static void release_runtime(void)
{
	if (!self_worker)
		mutex_drop(&runtime_lock, RANK_START);
}

static void fill_info(struct ktrt_info *info)
{
	info->workers = rt.nr_cores;
	info->threads = at_peek(&rt.nr_threads);
	info->max_threads = rt.options.max_threads;
	info->nodes = rt.nr_nodes;
	info->caches = rt.nr_caches;
	info->backend =
		at_load(&rt.has_umt)
			? umt_backend_name(umt_backend(at_load(&rt.umt)))
		: at_load(&rt.loading) ? "loading"
				       : "none";
	for (unsigned i = 0; i < rt.nr_slots; i++) {
		struct worker *w = at_load(&rt.workers[i]);

		if (w)
			add_counts(info, &w->counts);
	}
	info->replaced += at_peek(&rt.replaced);
	info->samples = at_peek(&rt.samples);
	info->overloaded = at_peek(&rt.overloaded);
	info->stalls = at_peek(&rt.stalls);
	info->memory_bytes = pool_bytes(&rt.tasks) + pool_bytes(&rt.smalls) +
			     access_arrays_bytes() + groups_bytes();
}

int ktrt_info_get(struct ktrt_info *info)
{
	int error =
		info ? struct_size_check(info->struct_size, STRUCT_SIZE_ONLY)
		     : -EINVAL;
	struct ktrt_info all = { 0 };

	if (error)
		return error;
	if (hold_runtime())
		fill_info(&all);
	else
		error = -ESRCH;
	release_runtime();
	if (error)
		return error;
	struct_size_write(info, &all, sizeof(all));
	return 0;
}

int ktrt_worker(void)
{
	struct worker *w = self_worker;
	const struct core *core = w && rt_runs() ? worker_core(w) : NULL;

	return core ? (int)core->index : -1;
}

int ktrt_thread_index(void)
{
	struct worker *w = self_worker;

	return w && rt_runs() ? (int)w->slot : -1;
}

int ktrt_thread_indices(void)
{
	int nr = hold_runtime() ? (int)rt.nr_slots : -ESRCH;

	release_runtime();
	return nr;
}

int ktrt_cpus(int *cpus, int nr)
{
	int cores;

	if (!cpus && nr > 0)
		return -EINVAL;
	cores = hold_runtime() ? (int)rt.nr_cores : -ESRCH;

	for (int i = 0; i < nr && i < cores; i++)
		cpus[i] = rt.cores[i].cpu;
	release_runtime();
	return cores;
}

const char *ktrt_version(void)
{
	return KTASK_VERSION;
}
