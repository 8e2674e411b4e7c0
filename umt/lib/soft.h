/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the backends without a program in the kernel share: a table that the library
 * writes itself, eventfds as descriptors, and the list of threads.
 *
 * Threads and counts have a lock of their own (thread_lock()): a thread that blocks must
 * not wait for one that opens a subscriber.
 */
#ifndef UMT_LIB_SOFT_H
#define UMT_LIB_SOFT_H

#include <pthread.h>

#include "subscriber.h"

/* A thread that some subscribers of one backend monitor. */
struct soft_thread {
	struct soft_set *set;
	struct soft_thread *next;
	struct umt *subscriber[UMT_MEMBERSHIPS];
	int nr;
	int cpu;
	bool counted;
	int nesting; /* explicit: of umt_block_begin() */
	int fd; /* perf */
	uint64_t serial; /* perf: never given anew */
	void *buffer; /* perf */
};

/* The threads of one backend. */
struct soft_set {
	struct soft_thread *threads;
	/* A thread of the set is new, or ends; NULL: nothing to do. */
	int (*begin)(struct soft_thread *thread);
	void (*end)(struct soft_thread *thread);
	pthread_key_t key;
	bool keyed;
};

/* The calling thread, or NULL.  Needs no lock. */
struct soft_thread *soft_self(const struct soft_set *set);

/* umt_thread_add() and umt_thread_remove(). */
int soft_add(struct soft_set *set, struct umt *subscriber);
int soft_remove(struct soft_set *set, struct umt *subscriber);

/* The core that @cpu counts as: the first where it came after the table. */
int soft_core(const struct umt *subscriber, int cpu);

/*
 * Report the thread as ready on @cpu, or as blocked, to all its subscribers.  Caller
 * holds thread_lock().
 */
void soft_ready(struct soft_thread *thread, int cpu);
void soft_blocked(struct soft_thread *thread);

/* The thread is gone or is to be forgotten; with the lock. */
void soft_forget(struct soft_thread *thread);

/* In the child of a fork: the others are gone, this one belongs to nobody; with
 * the lock. */
void soft_forget_all(struct soft_set *set);

/* For backends: as there, and these take the lock where it is needed. */
int soft_open(struct umt *subscriber);
void soft_close(struct soft_set *set, struct umt *subscriber);
int soft_next(struct umt *subscriber, struct umt_event *event);
int soft_core_fd(struct umt *subscriber, int cpu);
void soft_drain(struct umt *subscriber, int cpu);
void soft_child(struct umt *subscriber);

#endif /* UMT_LIB_SOFT_H */
