/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Helpers of the lowest priority that hold a lock of the kernel in a system call, such as
 * the lock of the process's mappings: whoever is about to wait for that lock lends them
 * its priority.
 *
 * Behaves badly if a thread lends in the moment in which a helper leaves: the helper keeps
 * the priority until it leaves the next time, or until the series of jobs is over.  If its
 * job is known to block by then, it keeps the priority until the end of its item.
 *
 * Locking: there is no lock.  Each field is atomic, and written by any thread.
 */
#ifndef OPS_LENT_THREADS_H
#define OPS_LENT_THREADS_H

#include <stdatomic.h>
#include <sys/types.h>

/* Further ones are lent nothing. */
#define LENT_THREADS_MAX 64

/* Of zeros at the beginning.  All fields are atomic, and of any thread. */
struct lent_threads {
	atomic_uint nr; /* that have entered and not left */
	_Atomic pid_t tids[LENT_THREADS_MAX]; /* 0: free */
	_Atomic pid_t lent[LENT_THREADS_MAX]; /* who was lent something there */
};

/** lent_threads_enter - by a helper, before its system call.  Return: what it passes to
 * lent_threads_leave(); negative if there is no room, and it is lent nothing */
int lent_threads_enter(struct lent_threads *threads);

/** lent_threads_leave - behind the system call: returns what was lent */
void lent_threads_leave(struct lent_threads *threads, int index);

/** lent_threads_lend - by any thread, to all that have entered; if none has, it is a load */
void lent_threads_lend(struct lent_threads *threads);

/** lent_threads_forked - in the child of a fork, where none of them exists */
void lent_threads_forked(struct lent_threads *threads);

#endif /* OPS_LENT_THREADS_H */
