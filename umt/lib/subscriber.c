/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Subscribers of the service: opening and closing, choosing the backend,
 * handing calls over to it, and what a fork does to them.
 *
 * Owns the list of open subscribers and the locks.  Does not own how blocked threads are
 * found (bpf.c, perf.c, explicit.c) nor the interface of the paper (process_api.c).
 *
 * Behaves badly: a child made by clone(2) or vfork(2) without the C library's
 * fork handlers still holds the descriptors until it executes a program.
 *
 * Locking: subscriber.h.
 *
 *	S: subscriber_lock()
 *	H: the thread that holds the lock
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ebpf/shared.h"
#include "bpf_program.h"
#include "subscriber.h"
#include "common/struct_size.h"

static pthread_once_t forks_once = PTHREAD_ONCE_INIT;
static struct umt *open_subscribers; /* S */

/* Best first. */
static const struct backend *const all_backends[] = {
#ifdef UMT_HAVE_BPF
	&bpf_backend,
#endif
	&perf_backend,
	&explicit_backend,
};

#define NR_BACKENDS (sizeof(all_backends) / sizeof(all_backends[0]))

struct guard {
	pthread_mutex_t mutex;
	unsigned int rank; /* constant */
	int cancel_state; /* of the holder, before it took the lock; H */
};

static struct guard of_subscribers = { .mutex = PTHREAD_MUTEX_INITIALIZER,
				       .rank = RANK_SUBSCRIBERS };
static struct guard of_threads = { .mutex = PTHREAD_MUTEX_INITIALIZER,
				   .rank = RANK_THREADS };

#ifdef RANK_ASSERTS
__thread unsigned int umt_locks;
#endif

/* A thread is not cancelled while it holds the lock: functions that are called then have
 * cancellation points. */
static void hold_guard(struct guard *guard)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	rank_take(umt_locks, guard->rank);
	pthread_mutex_lock(&guard->mutex);
	guard->cancel_state = before;
}

static void release_guard(struct guard *guard)
{
	int before = guard->cancel_state;

	rank_drop(umt_locks, guard->rank);
	pthread_mutex_unlock(&guard->mutex);
	pthread_setcancelstate(before, NULL);
}

void subscriber_lock(void)
{
	hold_guard(&of_subscribers);
}

void subscriber_unlock(void)
{
	release_guard(&of_subscribers);
}

void thread_lock(void)
{
	hold_guard(&of_threads);
}

void thread_unlock(void)
{
	release_guard(&of_threads);
}

size_t subscriber_table_bytes(int nr)
{
	return (size_t)(nr + 1) * sizeof(struct umt_core);
}

void subscriber_unmap(struct umt *subscriber)
{
	if (subscriber->word)
		munmap(subscriber->word,
		       subscriber_table_bytes(subscriber->nr_cores));
	subscriber->word = NULL;
	subscriber->cores = NULL;
}

/* ---- subscribers that a fork took away ---- */

static int gone_add(struct umt *subscriber)
{
	return -ESRCH;
}

static int gone_next(struct umt *subscriber, struct umt_event *event)
{
	return 0;
}

static int gone_core_fd(struct umt *subscriber, int cpu)
{
	return -ESRCH;
}

static void gone_drain(struct umt *subscriber, int cpu)
{
}

static void gone_close(struct umt *subscriber)
{
	subscriber_unmap(subscriber);
}

static const struct backend gone_backend = {
	.close = gone_close,
	.add = gone_add,
	.remove = gone_add,
	.next = gone_next,
	.core_fd = gone_core_fd,
	.drain = gone_drain,
};

static void before_fork(void)
{
	subscriber_lock();
	thread_lock();
}

static void in_parent(void)
{
	thread_unlock();
	subscriber_unlock();
}

/* The only thread; it holds what before_fork() took. */
static void in_child(void)
{
	struct umt *subscriber;
	size_t i;
	int cpu;

	for (subscriber = open_subscribers; subscriber;
	     subscriber = subscriber->next) {
		subscriber->backend->child(subscriber);
		subscriber->backend = &gone_backend;
		subscriber->fd = -1;
		for (cpu = 0; cpu < subscriber->nr_cores; cpu++)
			subscriber->core_fds[cpu] = -1;
	}
	open_subscribers = NULL;
	for (i = 0; i < NR_BACKENDS; i++)
		if (all_backends[i]->forked)
			all_backends[i]->forked();
	in_parent();
}

static void prepare_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

void subscriber_prepare_forks(void)
{
	pthread_once(&forks_once, prepare_forks);
}

/* ---- opening and closing ---- */

int subscriber_cores_alloc(struct umt *subscriber, int nr)
{
	int cpu;

	subscriber->nr_cores = nr;
	subscriber->core_fds =
		malloc((size_t)nr * sizeof(*subscriber->core_fds));
	if (!subscriber->core_fds)
		return -ENOMEM;
	for (cpu = 0; cpu < nr; cpu++)
		subscriber->core_fds[cpu] = -1;
	subscriber->seen = calloc((size_t)nr, sizeof(*subscriber->seen));
	return subscriber->seen ? 0 : -ENOMEM;
}

static void subscriber_free(struct umt *subscriber)
{
	free(subscriber->seen);
	free(subscriber->core_fds);
	free(subscriber);
}

static int open_by(struct umt **made, const struct backend *backend,
		   const struct umt_options *options)
{
	struct umt *subscriber = calloc(1, sizeof(*subscriber));
	int error;

	if (!subscriber)
		return -ENOMEM;
	subscriber->backend = backend;
	subscriber->flags = options->flags;
	subscriber->fd = -1;
	subscriber_lock();
	error = backend->open(subscriber, options->ring_bytes);
	if (error) {
		backend->close(subscriber);
		subscriber_free(subscriber);
	} else {
		subscriber->next = open_subscribers;
		open_subscribers = subscriber;
		*made = subscriber;
	}
	subscriber_unlock();
	return error;
}

/* UMT_BACKEND counts only if the program has not chosen a backend. */
static unsigned int wanted_backend(const struct umt_options *options)
{
	const char *name = secure_getenv("UMT_BACKEND");
	int id;

	if (options->backend != UMT_ANY || !name)
		return options->backend;
	for (id = UMT_BPF; id <= UMT_EXPLICIT; id++)
		if (!strcmp(name, umt_backend_name(id)))
			return (unsigned int)id;
	return UMT_ANY;
}

static int open_best(struct umt **subscriber, const struct umt_options *options)
{
	unsigned int wanted = wanted_backend(options);
	int error = -ENOTSUP;
	size_t i;

	for (i = 0; i < NR_BACKENDS; i++) {
		const struct backend *backend = all_backends[i];

		if (wanted != UMT_ANY && wanted != (unsigned int)backend->id)
			continue;
		if (options->flags && backend->id != UMT_BPF)
			continue;
		error = open_by(subscriber, backend, options);
		if (!error || error == -EUSERS)
			break;
	}
	return error;
}

static bool is_power_of_two(size_t n)
{
	return n && !(n & (n - 1));
}

static bool options_are_valid(const struct umt_options *options)
{
	if (options->flags & ~(UMT_TRACE | UMT_INHERIT))
		return false;
	if (options->backend > UMT_EXPLICIT)
		return false;
	return !options->ring_bytes || is_power_of_two(options->ring_bytes);
}

int umt_open(struct umt **subscriber, const struct umt_options *options)
{
	struct umt_options chosen = { .size = sizeof(chosen) };
	int error = 0;

	if (options)
		error = struct_size_read(&chosen, sizeof(chosen), options,
					 STRUCT_SIZE_ONLY);
	if (error)
		return error;
	if (!options_are_valid(&chosen))
		return -EINVAL;
	if (!chosen.ring_bytes)
		chosen.ring_bytes =
			chosen.flags & UMT_TRACE ? 4u << 20 : 64u << 10;
	subscriber_prepare_forks();
	return open_best(subscriber, &chosen);
}

void umt_close(struct umt *subscriber)
{
	struct umt **at;

	if (!subscriber)
		return;
	subscriber_lock();
	for (at = &open_subscribers; *at; at = &(*at)->next)
		if (*at == subscriber) {
			*at = subscriber->next;
			break;
		}
	subscriber->backend->close(subscriber);
	subscriber_unlock();
	subscriber_free(subscriber);
}

/* ---- handing over ---- */

int umt_backend(const struct umt *subscriber)
{
	return subscriber->backend->id;
}

int umt_thread_add(struct umt *subscriber)
{
	return subscriber->backend->add(subscriber);
}

int umt_thread_remove(struct umt *subscriber)
{
	return subscriber->backend->remove(subscriber);
}

static int pause_or_not(struct umt *subscriber, bool on)
{
	int error = -ENOTSUP;

	subscriber_lock();
	if (subscriber->backend->pause)
		error = subscriber->backend->pause(subscriber, on);
	subscriber_unlock();
	return error;
}

int umt_pause(struct umt *subscriber)
{
	return pause_or_not(subscriber, true);
}

int umt_resume(struct umt *subscriber)
{
	return pause_or_not(subscriber, false);
}

const struct umt_core *umt_cores(const struct umt *subscriber)
{
	return subscriber->cores;
}

int umt_nr_cores(const struct umt *subscriber)
{
	return subscriber->nr_cores;
}

int umt_fd(const struct umt *subscriber)
{
	return subscriber->fd;
}

/* Sequentially consistent: the caller searches for idle cores next, and must not do so
 * before the program can see the new value. */
void umt_want(struct umt *subscriber, unsigned int wanted)
{
	__atomic_store_n(&subscriber->word->wanted, wanted, __ATOMIC_SEQ_CST);
}

static bool is_idle(const struct umt_core *core)
{
	if (__atomic_load_n(&core->ready, __ATOMIC_SEQ_CST) > 0)
		return false;
	return __atomic_load_n(&core->wakes, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&core->moved_in, __ATOMIC_RELAXED);
}

int umt_idle(const struct umt *subscriber, int cpu)
{
	for (; cpu >= 0 && cpu < subscriber->nr_cores; cpu++)
		if (is_idle(&subscriber->cores[cpu]))
			return cpu;
	return -ENOENT;
}

int umt_next(struct umt *subscriber, struct umt_event *event)
{
	int found = subscriber->backend->next(subscriber, event);

	/* From now on the core may have another event. */
	if (found == 1 && event->kind == UMT_IDLE)
		__atomic_store_n(
			&subscriber->cores[event->cpu].reserved[UMT_CORE_TOLD],
			0, __ATOMIC_SEQ_CST);
	return found;
}

int umt_core_fd(struct umt *subscriber, int cpu)
{
	int fd;

	if (cpu < 0 || cpu >= subscriber->nr_cores)
		return -EINVAL;
	subscriber_lock();
	fd = subscriber->core_fds[cpu];
	if (fd < 0) {
		fd = subscriber->backend->core_fd(subscriber, cpu);
		__atomic_store_n(&subscriber->core_fds[cpu], fd,
				 __ATOMIC_RELEASE);
		if (fd >= 0)
			__atomic_store_n(&subscriber->cores[cpu]
						  .reserved[UMT_CORE_ARMED],
					 1, __ATOMIC_SEQ_CST);
	}
	subscriber_unlock();
	return fd;
}

/* Without the lock; umt_core_fd() may be called meanwhile. */
int subscriber_core_fd(const struct umt *subscriber, int cpu)
{
	return __atomic_load_n(&subscriber->core_fds[cpu], __ATOMIC_ACQUIRE);
}

/* Pairs with the writer, who counts before it checks whether to ring. */
int umt_core_counts(struct umt *subscriber, int cpu, struct umt_counts *counts)
{
	struct umt_core *core;
	struct umt_counts *seen;
	uint64_t out, in;

	if (cpu < 0 || cpu >= subscriber->nr_cores)
		return -EINVAL;
	core = &subscriber->cores[cpu];
	seen = &subscriber->seen[cpu];
	subscriber->backend->drain(subscriber, cpu);
	if (subscriber_core_fd(subscriber, cpu) >= 0)
		__atomic_store_n(&core->reserved[UMT_CORE_ARMED], 1,
				 __ATOMIC_SEQ_CST);
	out = __atomic_load_n(&core->sleeps, __ATOMIC_SEQ_CST) +
	      __atomic_load_n(&core->moved_out, __ATOMIC_SEQ_CST);
	in = __atomic_load_n(&core->wakes, __ATOMIC_SEQ_CST) +
	     __atomic_load_n(&core->moved_in, __ATOMIC_SEQ_CST);
	counts->blocked = out - seen->blocked;
	counts->unblocked = in - seen->unblocked;
	seen->blocked = out;
	seen->unblocked = in;
	return 0;
}

#ifndef UMT_HAVE_BPF
/* Built without eBPF: no subscriber is served by a program. */
int bpf_attach(struct umt *subscriber, int tid)
{
	return -EPERM;
}

bool program_subscriber_lingers(unsigned int index)
{
	return false;
}
#endif

/* ---- words ---- */

static void try_backends(struct umt_backends *info)
{
	size_t i;

#ifndef UMT_HAVE_BPF
	strcpy(info->why[UMT_BPF], "built without clang, bpftool or libbpf");
#endif
	for (i = 0; i < NR_BACKENDS; i++) {
		int id = all_backends[i]->id;
		char note[WHY_MAX] = "";

		if (all_backends[i]->probe(info->why[id], note) ||
		    info->backend)
			continue;
		info->backend = id;
		strcpy(info->why[UMT_ANY], note);
	}
}

int umt_info(struct umt_backends *info)
{
	int error = struct_size_check(info->size, STRUCT_SIZE_ONLY);
	struct umt_backends all = { 0 };

	if (error)
		return error;
	try_backends(&all);
	struct_size_write(info, &all, sizeof(all));
	return 0;
}

const char *umt_backend_name(int backend)
{
	static const char *const names[] = { NULL, "bpf", "perf", "explicit" };

	return backend > 0 && backend <= UMT_EXPLICIT ? names[backend] : NULL;
}

const char *umt_reason_name(int reason)
{
	static const char *const names[] = { "other", "io",	 "futex",
					     "fault", "waiting", "stopped" };

	return reason >= 0 && reason < UMT_NR_REASONS ? names[reason] : NULL;
}

const char *umt_version(void)
{
	return KTASK_VERSION;
}
