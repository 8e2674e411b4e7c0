/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A lock that helpers hold across system calls: whoever waits for it long lends its
 * priority to a holder of the lowest one, which may get no CPU otherwise.
 */
#ifndef OPS_LENT_LOCK_H
#define OPS_LENT_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

struct lent_lock {
	pthread_mutex_t mutex;
	_Atomic pid_t holder; /* 0: none */
	_Atomic pid_t
		lent; /* who was lent a priority and has not given it back; 0 */
};

void lent_lock_init(struct lent_lock *lock);
void lent_lock_destroy(struct lent_lock *lock);

/** lent_lock_acquire - any thread; after a millisecond the holder is lent its priority */
void lent_lock_acquire(struct lent_lock *lock);

/** lent_lock_release - gives back what was lent */
void lent_lock_release(struct lent_lock *lock);

#endif /* OPS_LENT_LOCK_H */
