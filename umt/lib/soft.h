/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the backends without a program in the kernel share: a table that the library
 * writes itself, eventfds as descriptors, and the list of threads.
 *
 * Threads and counts have a lock of their own (thread_lock()): a thread that blocks must
 * not wait for one that opens a subscriber.
 *
 * Locking: subscriber.h has the locks, S and T among them.  Of what is here:
 *
 *	T: under thread_lock()
 *	I: set before others can find it, constant from then on
 *	O: the thread itself
 *	A: read by any thread: by atomic operations
 *
 * Only the thread itself makes and frees its record, but for that of a thread that
 * has ended, and in the child of a fork.  So a thread finds its own without a lock.
 */
#ifndef UMT_LIB_SOFT_H
#define UMT_LIB_SOFT_H

#include <pthread.h>

#include "subscriber.h"

/* A thread that some subscribers of one backend monitor. */
struct soft_thread {
	struct soft_set *set; /* I */
	struct soft_thread *next; /* T */
	struct umt *subscriber[UMT_MEMBERSHIPS]; /* T */
	int nr; /* T */
	int cpu; /* T */
	bool counted; /* T */
	int nesting; /* explicit: of umt_block_begin(); O */
	int fd; /* perf; T */
	pid_t tid; /* perf: its number in /proc, or 0; I */
	uint64_t serial; /* perf: no other thread ever gets it; I */
	void *buffer; /* perf; T */
};

/* The threads of one backend. */
struct soft_set {
	struct soft_thread *threads; /* T */
	/* Called when a thread joins the set and when it leaves; under T; or NULL.
	 * Constant. */
	int (*begin)(struct soft_thread *thread);
	void (*end)(struct soft_thread *thread);
	pthread_key_t key; /* set before keyed, constant from then on */
	bool keyed; /* T, A */
};

/* The calling thread, or NULL.  Needs no lock. */
struct soft_thread *soft_self(const struct soft_set *set);

/* umt_thread_add() and umt_thread_remove(). */
int soft_add(struct soft_set *set, struct umt *subscriber);
int soft_remove(struct soft_set *set, struct umt *subscriber);

/* The core that @cpu counts as: a CPU that was added after the table was made counts as
 * the first core. */
int soft_core(const struct umt *subscriber, int cpu);

/*
 * Report the thread as ready on @cpu, or as blocked, to all its subscribers; under T.
 */
void soft_ready(struct soft_thread *thread, int cpu);
void soft_blocked(struct soft_thread *thread);

/* The thread is gone or is to be forgotten; under T. */
void soft_forget(struct soft_thread *thread);

/* In the child of a fork, before it has a second thread: the others are gone, this
 * one belongs to nobody; under T. */
void soft_forget_all(struct soft_set *set);

/* As in struct backend; these take T themselves. */
int soft_open(struct umt *subscriber);
void soft_close(struct soft_set *set, struct umt *subscriber);
int soft_next(struct umt *subscriber, struct umt_event *event);
int soft_core_fd(struct umt *subscriber, int cpu);
void soft_drain(struct umt *subscriber, int cpu);
void soft_child(struct umt *subscriber);

#endif /* UMT_LIB_SOFT_H */
