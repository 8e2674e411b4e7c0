/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Users of the service: opening and closing, choosing the backend, handing
 * calls over to it, and what a fork does to them.
 *
 * Owns the list of open users and the locks.  Does not own how anything is
 * learnt (bpf.c, perf.c, explicit.c) nor the paper's form (paper.c).
 *
 * Behaves badly: a child made by clone(2) or vfork(2) without the C library's
 * fork handlers still holds the descriptors until it executes a program.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "umt/shared.h"
#include "user.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct umt *users;

/* Best first. */
static const struct backend *const backends[] = {
#ifdef UMT_HAVE_BPF
	&bpf_backend,
#endif
	&perf_backend,
	&explicit_backend,
};

#define NR_BACKENDS (sizeof(backends) / sizeof(backends[0]))

struct guard {
	pthread_mutex_t mutex;
	int cancel_state; /* may who holds it be cancelled otherwise? */
};

static struct guard of_users = { .mutex = PTHREAD_MUTEX_INITIALIZER };
static struct guard of_threads = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* Below it are calls at which a cancelled thread would end, with the lock. */
static void hold(struct guard *guard)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_mutex_lock(&guard->mutex);
	guard->cancel_state = before;
}

static void release(struct guard *guard)
{
	int before = guard->cancel_state;

	pthread_mutex_unlock(&guard->mutex);
	pthread_setcancelstate(before, NULL);
}

void user_lock(void)
{
	hold(&of_users);
}

void user_unlock(void)
{
	release(&of_users);
}

void thread_lock(void)
{
	hold(&of_threads);
}

void thread_unlock(void)
{
	release(&of_threads);
}

size_t user_table_bytes(int nr)
{
	return (size_t)(nr + 1) * sizeof(struct umt_core);
}

void user_unmap(struct umt *user)
{
	if (user->word)
		munmap(user->word, user_table_bytes(user->nr_cores));
	user->word = NULL;
	user->cores = NULL;
}

/* ---- users that a fork took away ---- */

static int gone_add(struct umt *user)
{
	return -ESRCH;
}

static int gone_next(struct umt *user, struct umt_event *event)
{
	return 0;
}

static int gone_core_fd(struct umt *user, int cpu)
{
	return -ESRCH;
}

static void gone_quiet(struct umt *user, int cpu)
{
}

static void gone_close(struct umt *user)
{
	user_unmap(user);
}

static const struct backend gone_backend = {
	.close = gone_close,
	.add = gone_add,
	.remove = gone_add,
	.next = gone_next,
	.core_fd = gone_core_fd,
	.quiet = gone_quiet,
};

static void before_fork(void)
{
	user_lock();
	thread_lock();
}

static void in_parent(void)
{
	thread_unlock();
	user_unlock();
}

static void in_child(void)
{
	struct umt *user;
	int cpu;

	for (user = users; user; user = user->next) {
		user->backend->child(user);
		user->backend = &gone_backend;
		user->fd = -1;
		for (cpu = 0; cpu < user->nr_cores; cpu++)
			user->core_fds[cpu] = -1;
	}
	users = NULL;
	in_parent();
}

static void prepare_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

void user_prepare_forks(void)
{
	pthread_once(&once, prepare_forks);
}

/* ---- opening and closing ---- */

int user_cores_alloc(struct umt *user, int nr)
{
	int cpu;

	user->nr_cores = nr;
	user->core_fds = malloc((size_t)nr * sizeof(*user->core_fds));
	if (!user->core_fds)
		return -ENOMEM;
	for (cpu = 0; cpu < nr; cpu++)
		user->core_fds[cpu] = -1;
	user->seen = calloc((size_t)nr, sizeof(*user->seen));
	return user->seen ? 0 : -ENOMEM;
}

static void user_free(struct umt *user)
{
	free(user->seen);
	free(user->core_fds);
	free(user);
}

static int open_by(struct umt **made, const struct backend *backend,
		   const struct umt_options *options)
{
	struct umt *user = calloc(1, sizeof(*user));
	int error;

	if (!user)
		return -ENOMEM;
	user->backend = backend;
	user->flags = options->flags;
	user->fd = -1;
	user_lock();
	error = backend->open(user, options->ring_bytes);
	if (error) {
		backend->close(user);
		user_free(user);
	} else {
		user->next = users;
		users = user;
		*made = user;
	}
	user_unlock();
	return error;
}

/* The environment only narrows what the program left open. */
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

static int open_best(struct umt **user, const struct umt_options *options)
{
	unsigned int wanted = wanted_backend(options);
	int error = -ENOTSUP;
	size_t i;

	for (i = 0; i < NR_BACKENDS; i++) {
		const struct backend *backend = backends[i];

		if (wanted != UMT_ANY && wanted != (unsigned int)backend->id)
			continue;
		if (options->flags && backend->id != UMT_BPF)
			continue;
		error = open_by(user, backend, options);
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
	if (options->size != sizeof(*options))
		return false;
	if (options->flags & ~(UMT_TRACE | UMT_INHERIT))
		return false;
	if (options->backend > UMT_EXPLICIT)
		return false;
	return !options->ring_bytes || is_power_of_two(options->ring_bytes);
}

int umt_open(struct umt **user, const struct umt_options *options)
{
	struct umt_options chosen = { .size = sizeof(chosen) };

	if (options && !options_are_valid(options))
		return -EINVAL;
	if (options)
		chosen = *options;
	if (!chosen.ring_bytes)
		chosen.ring_bytes =
			chosen.flags & UMT_TRACE ? 4u << 20 : 64u << 10;
	user_prepare_forks();
	return open_best(user, &chosen);
}

void umt_close(struct umt *user)
{
	struct umt **at;

	if (!user)
		return;
	user_lock();
	for (at = &users; *at; at = &(*at)->next)
		if (*at == user) {
			*at = user->next;
			break;
		}
	user->backend->close(user);
	user_unlock();
	user_free(user);
}

/* ---- handing over ---- */

int umt_backend(const struct umt *user)
{
	return user->backend->id;
}

int umt_thread_add(struct umt *user)
{
	return user->backend->add(user);
}

int umt_thread_remove(struct umt *user)
{
	return user->backend->remove(user);
}

const struct umt_core *umt_cores(const struct umt *user)
{
	return user->cores;
}

int umt_nr_cores(const struct umt *user)
{
	return user->nr_cores;
}

int umt_fd(const struct umt *user)
{
	return user->fd;
}

/* Whoever looks for idle cores next must not look before this is seen. */
void umt_want(struct umt *user, unsigned int wanted)
{
	__atomic_store_n(&user->word->wanted, wanted, __ATOMIC_SEQ_CST);
}

static bool is_idle(const struct umt_core *core)
{
	if (__atomic_load_n(&core->ready, __ATOMIC_SEQ_CST) > 0)
		return false;
	return __atomic_load_n(&core->wakes, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&core->moved_in, __ATOMIC_RELAXED);
}

int umt_idle(const struct umt *user, int cpu)
{
	for (; cpu >= 0 && cpu < user->nr_cores; cpu++)
		if (is_idle(&user->cores[cpu]))
			return cpu;
	return -ENOENT;
}

int umt_next(struct umt *user, struct umt_event *event)
{
	int found = user->backend->next(user, event);

	/* From now on the core is told of again. */
	if (found == 1 && event->kind == UMT_IDLE)
		__atomic_store_n(&user->cores[event->cpu].told, 0,
				 __ATOMIC_SEQ_CST);
	return found;
}

int umt_core_fd(struct umt *user, int cpu)
{
	int fd;

	if (cpu < 0 || cpu >= user->nr_cores)
		return -EINVAL;
	user_lock();
	fd = user->core_fds[cpu];
	if (fd < 0) {
		fd = user->backend->core_fd(user, cpu);
		__atomic_store_n(&user->core_fds[cpu], fd, __ATOMIC_RELEASE);
		if (fd >= 0)
			__atomic_store_n(&user->cores[cpu].armed, 1,
					 __ATOMIC_SEQ_CST);
	}
	user_unlock();
	return fd;
}

/* Without the lock; umt_core_fd() may be called meanwhile. */
int user_core_fd(const struct umt *user, int cpu)
{
	return __atomic_load_n(&user->core_fds[cpu], __ATOMIC_ACQUIRE);
}

/* Pairs with the writer, who counts before it looks whether to ring. */
int umt_core_counts(struct umt *user, int cpu, struct umt_counts *counts)
{
	struct umt_core *core;
	struct umt_counts *seen;
	uint64_t out, in;

	if (cpu < 0 || cpu >= user->nr_cores)
		return -EINVAL;
	core = &user->cores[cpu];
	seen = &user->seen[cpu];
	user->backend->quiet(user, cpu);
	if (user_core_fd(user, cpu) >= 0)
		__atomic_store_n(&core->armed, 1, __ATOMIC_SEQ_CST);
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
/* Nobody has a user with a program. */
int bpf_attach(struct umt *user, int tid)
{
	return -EPERM;
}
#endif

/* ---- words ---- */

int umt_info(struct umt_backends *info)
{
	size_t i;

	if (info->size != sizeof(*info))
		return -EINVAL;
	info->backend = 0;
	memset(info->why, 0, sizeof(info->why));
#ifndef UMT_HAVE_BPF
	strcpy(info->why[UMT_BPF], "built without clang, bpftool or libbpf");
#endif
	for (i = 0; i < NR_BACKENDS; i++) {
		int id = backends[i]->id;
		char note[WHY_MAX] = "";

		if (backends[i]->probe(info->why[id], note) || info->backend)
			continue;
		info->backend = id;
		strcpy(info->why[UMT_ANY], note);
	}
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
