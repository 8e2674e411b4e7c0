/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interface of the founding paper: one subscriber for the process, a descriptor per
 * core, two counts.  It uses only the public functions; its lock comes before the
 * library's.
 *
 * The difference from the paper: the descriptor only tells that counts have changed, and
 * umt_core_read() reads them.  The paper's eventfd holds both counts in one word of 64
 * bits, where one overflows into the other.  And eBPF cannot write eventfds.
 *
 * Locking: subscriber.h has the order.
 *
 *	P: process_lock, held for writing to change it, and for reading to use the
 *	   subscriber, so that it is not closed meanwhile
 *	A: read by any thread: by atomic operations
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include <umt.h>

#include "subscriber.h"

static pthread_rwlock_t process_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;
static struct umt *process_subscriber; /* P, A */

static int open_fds(struct umt *subscriber, int *fds, int nr)
{
	int cpu;

	for (cpu = 0; cpu < umt_nr_cores(subscriber); cpu++) {
		int fd = umt_core_fd(subscriber, cpu);

		if (fd < 0)
			return fd;
		if (cpu < nr)
			fds[cpu] = fd;
	}
	return umt_nr_cores(subscriber);
}

/* The thread cannot be cancelled while it has the lock.  Return: its cancel state before. */
static int lock_process(bool alone)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	rank_take(umt_locks, RANK_PROCESS);
	if (alone)
		pthread_rwlock_wrlock(&process_lock);
	else
		pthread_rwlock_rdlock(&process_lock);
	return before;
}

static void unlock_process(int before)
{
	rank_drop(umt_locks, RANK_PROCESS);
	pthread_rwlock_unlock(&process_lock);
	pthread_setcancelstate(before, NULL);
}

static void before_fork(void)
{
	rank_take(umt_locks, RANK_PROCESS);
	pthread_rwlock_wrlock(&process_lock);
}

static void in_parent(void)
{
	rank_drop(umt_locks, RANK_PROCESS);
	pthread_rwlock_unlock(&process_lock);
}

/* The lock is held by this thread, which has another number in the child. */
static void in_child(void)
{
	rank_drop(umt_locks, RANK_PROCESS);
	pthread_rwlock_init(&process_lock, NULL);
}

/*
 * Registered after the library's own handlers, so that it is called before them: that is
 * the order in which the two locks are taken everywhere.  Must be called before the lock
 * is first taken: opening a subscriber takes long, and another thread may fork meanwhile.
 */
static void prepare_forks(void)
{
	subscriber_prepare_forks();
	pthread_atfork(before_fork, in_parent, in_child);
}

static void set_subscriber(struct umt *subscriber)
{
	rank_assert_held(umt_locks, RANK_PROCESS);
	__atomic_store_n(&process_subscriber, subscriber, __ATOMIC_RELEASE);
}

static int enable_process(int *fds, int nr)
{
	struct umt *subscriber;
	int error;

	/* In the child of a fork the subscriber is there, but closed. */
	if (process_subscriber && umt_fd(process_subscriber) >= 0)
		return -EBUSY;
	umt_close(process_subscriber);
	set_subscriber(NULL);
	error = umt_open(&subscriber, NULL);
	if (error)
		return error;
	error = open_fds(subscriber, fds, nr);
	if (error < 0)
		umt_close(subscriber);
	else
		set_subscriber(subscriber);
	return error;
}

int umt_enable(int *fds, int nr)
{
	int result, before;

	if (nr < 0 || (nr && !fds))
		return -EINVAL;
	pthread_once(&forks_once, prepare_forks);
	before = lock_process(true);
	result = enable_process(fds, nr);
	unlock_process(before);
	return result;
}

void umt_disable(void)
{
	int before;

	pthread_once(&forks_once, prepare_forks);
	before = lock_process(true);
	umt_close(process_subscriber);
	set_subscriber(NULL);
	unlock_process(before);
}

/* Does not wait for umt_enable() in another thread, which may take long: until it is done
 * there is no subscriber. */
static bool is_enabled(void)
{
	return __atomic_load_n(&process_subscriber, __ATOMIC_ACQUIRE);
}

static int control_thread(bool on)
{
	rank_assert_held(umt_locks, RANK_PROCESS);
	if (!process_subscriber)
		return -ENODEV;
	return on ? umt_thread_add(process_subscriber)
		  : umt_thread_remove(process_subscriber);
}

int umt_thread_ctrl(int on)
{
	int result, before;

	if (on != 0 && on != 1)
		return -EINVAL;
	if (!is_enabled())
		return -ENODEV;
	before = lock_process(false);
	result = control_thread(on);
	unlock_process(before);
	return result;
}

int umt_core_read(int cpu, struct umt_counts *counts)
{
	int result, before;

	if (!is_enabled())
		return -ENODEV;
	before = lock_process(false);
	result = process_subscriber
			 ? umt_core_counts(process_subscriber, cpu, counts)
			 : -ENODEV;
	unlock_process(before);
	return result;
}
