/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The paper's form: one user for the process, a descriptor per core, two
 * counts.  On top of the public functions, and of the library's order of locks.
 *
 * Where it differs: the descriptor tells that there is something, and
 * umt_core_read() what.  The paper's eventfd holds both counts in one word of
 * 64 bits, of which one overflows into the other; eBPF cannot write eventfds.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include <umt.h>

#include "user.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct umt *process_user;

static int open_fds(struct umt *user, int *fds, int nr)
{
	int cpu;

	for (cpu = 0; cpu < umt_nr_cores(user); cpu++) {
		int fd = umt_core_fd(user, cpu);

		if (fd < 0)
			return fd;
		if (cpu < nr)
			fds[cpu] = fd;
	}
	return umt_nr_cores(user);
}

static void lock_it(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_it(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * Registered after the library's own handlers, and so called before them:
 * the order in which the two locks are taken elsewhere.  Before the lock is
 * first taken: opening a user takes long, and another thread may fork.
 */
static void prepare_forks(void)
{
	user_prepare_forks();
	pthread_atfork(lock_it, unlock_it, unlock_it);
}

static int enable(int *fds, int nr)
{
	struct umt *user;
	int error;

	/* In the child of a fork the user is there, but closed. */
	if (process_user && umt_fd(process_user) >= 0)
		return -EBUSY;
	umt_close(process_user);
	process_user = NULL;
	error = umt_open(&user, NULL);
	if (error)
		return error;
	error = open_fds(user, fds, nr);
	if (error < 0)
		umt_close(user);
	else
		__atomic_store_n(&process_user, user, __ATOMIC_RELEASE);
	return error;
}

int umt_enable(int *fds, int nr)
{
	int result;

	if (nr < 0 || (nr && !fds))
		return -EINVAL;
	pthread_once(&once, prepare_forks);
	lock_it();
	result = enable(fds, nr);
	unlock_it();
	return result;
}

void umt_disable(void)
{
	struct umt *user;

	pthread_once(&once, prepare_forks);
	lock_it();
	user = process_user;
	__atomic_store_n(&process_user, NULL, __ATOMIC_RELEASE);
	umt_close(user);
	unlock_it();
}

int umt_thread_ctrl(int on)
{
	struct umt *user = __atomic_load_n(&process_user, __ATOMIC_ACQUIRE);

	if (on != 0 && on != 1)
		return -EINVAL;
	if (!user)
		return -ENODEV;
	return on ? umt_thread_add(user) : umt_thread_remove(user);
}

int umt_core_read(int cpu, struct umt_counts *counts)
{
	struct umt *user = __atomic_load_n(&process_user, __ATOMIC_ACQUIRE);

	if (!user)
		return -ENODEV;
	return umt_core_counts(user, cpu, counts);
}
