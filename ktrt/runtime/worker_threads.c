/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads of the runtime and their records.  A record keeps its slot and is freed only
 * when the runtime ends, because thieves may read it.  Does not own what workers do
 * (task_sched.c) nor where (park.c).
 *
 * Locking: rt.h.  A record is the maker's from worker_new() until its thread has
 * begun, then that thread's, and from worker_retire() on the next maker's.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/proc_stat.h"
#include "access_arrays.h"
#include "trace.h"

__thread struct worker *self_worker __attribute__((tls_model("initial-exec")));

#ifdef RANK_ASSERTS
__thread unsigned rt_locks;
#endif

/* ---- records ---- */

/*
 * After a pause caches and TLBs hold nothing of what a wake-up touches.  So a record has
 * a page of its own, together with the first tasks that it makes.
 */
#define RECORD_PAGE 4096

_Static_assert(sizeof(struct worker) <= RECORD_PAGE, "a record has a page");

static struct worker *record_new(unsigned slot)
{
	struct worker *w = aligned_alloc(RECORD_PAGE, RECORD_PAGE);

	if (!w)
		return NULL;
	memset(w, 0, sizeof(*w));
	for (unsigned i = 0; i < RECORD_TASKS; i++)
		pool_put(&rt.tasks, &w->tasks, &w->records[i]);
	if (!deque_init(&w->deque)) {
		free(w);
		return NULL;
	}
	w->slot = slot;
	return w;
}

/* A slot among those of the cache, else any. */
static long free_slot(unsigned cache)
{
	unsigned first = cache * rt.slots_per_cache;

	for (unsigned i = 0; i < rt.nr_slots; i++) {
		unsigned slot = (first + i) % rt.nr_slots;

		if (!rt.workers[slot])
			return slot;
	}
	return -1;
}

static struct worker *find_record(unsigned cache)
{
	struct worker *w = rt.retired;
	long slot;

	rt_assert_locked(RANK_POOL);
	if (w) {
		rt.retired = w->link;
		return w;
	}
	slot = free_slot(cache);
	w = slot < 0 ? NULL : record_new((unsigned)slot);
	if (w)
		at_store(&rt.workers[slot], w);
	return w;
}

struct worker *worker_new(unsigned cache)
{
	struct worker *w;

	mutex_take(&rt.pool_lock, RANK_POOL);
	w = find_record(cache);
	mutex_drop(&rt.pool_lock, RANK_POOL);
	if (!w)
		return NULL;
	at_poke(&w->current, NULL);
	at_poke(&w->core, NULL);
	w->leads = false;
	w->nr_taken = 0;
	w->judged = SHORT_TASKS_JUDGED;
	w->fast = NULL;
	w->at_once = NULL;
	w->waited = 0;
	at_poke(&w->left, NULL);
	at_poke(&w->stalls, at_load(&rt.stalls));
	w->grants = 0;
	w->yields.by = NULL;
	w->lone = w->lent = false;
	at_poke(&w->helps, false);
	w->below = w->beside = NULL;
	w->on_cpu = NULL;
	w->maker = NULL;
	w->borrows = w->handed = false;
	w->generation = rt.generation;
	w->cpu = -1;
	w->stack_least = 0;
	w->stack_usable = 0;
	at_store(&w->tid, 0);
	at_poke(&w->umt, NULL);
	/* It is on no list.  A core may still know the record as its last leaver,
	 * and looks whether that sleeps. */
	at_poke(&w->wake, (uint32_t)SIGNAL_GIVEN);
	return w;
}

/* What is left in its queue is for everybody. */
void worker_retire(struct worker *w)
{
	struct ktrt_task *task;

	while ((task = deque_pop(&w->deque)))
		task_ready(NULL, task);
	w->advertised = false;
	at_store(mask_flag(rt.loaded, w->slot), 0);
	at_store(&w->deque.plenty, 0);
	if (w->blank)
		task_free(w, w->blank);
	w->blank = NULL;
	cache_drain(&rt.tasks, &w->tasks);
	cache_drain(&rt.smalls, &w->smalls);
	access_arrays_drain(w);
	at_poke(&w->core, NULL);
	mutex_take(&rt.pool_lock, RANK_POOL);
	w->link = rt.retired;
	rt.retired = w;
	mutex_drop(&rt.pool_lock, RANK_POOL);
}

/* ---- threads ---- */

static size_t worker_stack_bytes(void)
{
	size_t bytes = rt.options.stack_bytes;
	pthread_attr_t attr;

	if (bytes)
		return bytes;
	pthread_attr_init(&attr);
	pthread_attr_getstacksize(&attr, &bytes);
	pthread_attr_destroy(&attr);
	return bytes;
}

void worker_read_stack(struct worker *w)
{
	size_t size = 0, needed = worker_stack_bytes() / 8 * 7;
	pthread_attr_t attr;
	void *low = NULL;

	w->stack_least = UINTPTR_MAX;
	w->stack_usable = 0;
	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	if (size <= needed)
		return;
	w->stack_least = (uintptr_t)low + needed;
	w->stack_usable = size - needed;
}

/* The thread has just begun, so nearly all of its stack is left: that takes no system call. */
static void begin_stack(struct worker *w)
{
	w->stack_usable = worker_stack_bytes() / 8;
	w->stack_least =
		(uintptr_t)__builtin_frame_address(0) - w->stack_usable;
}

static void set_cpus(struct worker *w, int only)
{
	size_t size = CPU_ALLOC_SIZE(rt.nr_cpus);
	cpu_set_t *cpus = CPU_ALLOC(rt.nr_cpus);

	if (!cpus)
		return;
	CPU_ZERO_S(size, cpus);
	if (only >= 0)
		CPU_SET_S(only, size, cpus);
	else
		for (unsigned i = 0; i < rt.nr_cores; i++)
			CPU_SET_S(rt.cores[i].cpu, size, cpus);
	sched_setaffinity(w->tid, size, cpus);
	CPU_FREE(cpus);
}

WAKE_PATH void worker_bind(struct worker *w)
{
	int cpu = w->core->cpu;

	/* The program decides where an attached thread runs. */
	if (w->cpu == cpu || w->outer || rt.options.flags & KTRT_UNBOUND)
		return;
	w->cpu = cpu;
	set_cpus(w, cpu);
}

void worker_monitor(struct worker *w, bool on)
{
	struct umt *umt = on ? at_load(&rt.watching) : NULL;
	struct umt *before = at_peek(&w->umt);

	/* It rests: what it knows of the thread would grow old. */
	if (before && !umt) {
		umt_thread_remove(before);
		at_store(&w->umt, NULL);
	} else if (umt && !before) {
		umt_thread_add(umt);
		at_store(&w->umt, umt);
	}
}

/*
 * Either worker_join_all() joins the thread, or the thread detaches itself.  In that
 * case it counts as ending before worker_join_all() checks, because a detached thread
 * may be gone.
 */
static bool leaves_by_itself(struct worker *w)
{
	bool leaves;

	mutex_take(&rt.pool_lock, RANK_POOL);
	leaves = !at_load(&rt.stop);
	if (leaves) {
		at_add(&rt.ending, 1);
		at_store(&w->joinable, false);
		pthread_detach(pthread_self());
	}
	mutex_drop(&rt.pool_lock, RANK_POOL);
	return leaves;
}

/* Ran to its end, or left in a task by pthread_exit(). */
static void thread_ended(void *arg)
{
	struct worker *w = arg;

	self_worker = NULL;
	if (at_peek(&rt.generation) != w->generation || !leaves_by_itself(w))
		return;
	park_gone(w);
	worker_monitor(w, false);
	worker_retire(w);
	at_sub(&rt.nr_threads, 1);
	at_sub(&rt.ending, 1);
}

/* Only by the thread itself: another thread could find it gone. */
static void set_name(const struct worker *w)
{
	char name[16];

	snprintf(name, sizeof(name), "ktrt/%u", w->slot);
	pthread_setname_np(pthread_self(), name);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	self_worker = w;
	set_name(w);
	begin_stack(w);
	at_store(&w->tid, (pid_t)syscall(SYS_gettid));
	set_cpus(w, -1);
	if (rt.trace)
		trace_thread(w);
	pthread_cleanup_push(thread_ended, w);
	if (w->leads) {
		worker_monitor(w, true);
		leader_lead(w);
	} else {
		worker_bind(w);
		worker_monitor(w, true);
	}
	if (w->core) {
		at_store(&w->core->arriving, 0);
		sched_work(w);
	}
	pthread_cleanup_pop(0);
	thread_ended(w);
	return NULL;
}

int worker_thread(pthread_t *thread, void *(*main)(void *), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	if (rt.options.stack_bytes)
		pthread_attr_setstacksize(&attr, rt.options.stack_bytes);
	/* Faults stay open: blocked ones would kill in place of a handler. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGTRAP);
	sigdelset(&all, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, &attr, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return error ? -EAGAIN : 0;
}

/* All threads begin here, so that max_threads holds whoever asks for one. */
static bool count_thread(void)
{
	uint32_t nr = at_load(&rt.nr_threads);

	do {
		if (nr >= rt.options.max_threads)
			return false;
	} while (!at_cas(&rt.nr_threads, &nr, nr + 1));
	return true;
}

int worker_start(struct core *core)
{
	struct worker *w =
		count_thread() ? worker_new(core ? core->cache : 0) : NULL;

	if (!w)
		return -EAGAIN;
	at_poke(&w->core, core);
	w->leads = !core;
	at_store(&w->joinable, true);
	if (!worker_thread(&w->thread, worker_main, w))
		return 0;
	at_store(&w->joinable, false);
	at_sub(&rt.nr_threads, 1);
	worker_retire(w);
	return -EAGAIN;
}

/* Whoever leaves by itself has said so, as rt.stop is set: see there. */
void worker_join_all(void)
{
	mutex_take(&rt.pool_lock, RANK_POOL);
	mutex_drop(&rt.pool_lock, RANK_POOL);
	for (unsigned i = 0; i < rt.nr_slots; i++) {
		struct worker *w = rt.workers[i];

		if (w && at_load(&w->joinable))
			pthread_join(w->thread, NULL);
	}
}

void worker_free_all(void)
{
	for (unsigned i = 0; rt.workers && i < rt.nr_slots; i++) {
		struct worker *w = rt.workers[i];

		if (!w)
			continue;
		deque_free(&w->deque);
		free(w);
	}
}

/* ---- for a stalled runtime ---- */

/* As the kernel tells; a thread that waits for a CPU is not blocked. */
static bool thread_blocked(pid_t tid)
{
	char path[64], text[512], state;
	ssize_t nr;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	nr = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (nr <= 0)
		return false;
	text[nr] = 0;
	state = proc_stat_state(text);
	return state == 'S' || state == 'D';
}

/* Are there workers on the core, but none that runs or could?  A thread that
 * has not begun waits for a CPU. */
bool worker_all_blocked(const struct core *core)
{
	if (rt_counts())
		return core_ready(core) <= 0;
	for (unsigned i = 0; i < rt.nr_slots; i++) {
		struct worker *w = at_load(&rt.workers[i]);
		pid_t tid;

		if (!w || at_peek(&w->core) != core)
			continue;
		tid = at_load(&w->tid);
		if (!tid || !thread_blocked(tid))
			return false;
	}
	return true;
}

/* A sleeping worker need not be monitored: it is not ready, and has itself monitored when it
 * continues.  So does one that has not begun. */
bool worker_all_monitored(void)
{
	for (unsigned i = 0; i < rt.nr_slots; i++) {
		struct worker *w = at_load(&rt.workers[i]);
		pid_t tid;

		if (!w || !at_peek(&w->core) || at_load(&w->umt))
			continue;
		tid = at_load(&w->tid);
		if (!tid || !thread_blocked(tid))
			return false;
	}
	return true;
}
