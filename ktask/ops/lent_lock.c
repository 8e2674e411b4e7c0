/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See lent_lock.h.  A mutex with PTHREAD_PRIO_INHERIT does not help: the kernel boosts no
 * thread for one without a real-time policy.
 *
 * A holder returns a loan before it releases the lock, because after that it must keep what
 * its caller lends it for the end of its chunk.  If the holder loses its CPU between the two,
 * a waiter may lend it a priority once more.  It keeps that one until it releases a lock the
 * next time, which may be several jobs later if they follow each other closely.
 *
 * Locking: there is none but the mutex.  The fields are atomic, and of any thread.
 */
#include <time.h>
#include <unistd.h>

#include "lent_lock.h"
#include "user/job_waits.h"
#include "user/pool/user_prio.h"
#include "util/assertion.h"

/* How long a holder may keep the lock without being lent a priority. */
#define PATIENCE_NS 1000000

void lent_lock_init(struct lent_lock *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
	atomic_init(&lock->holder, 0);
	atomic_init(&lock->lent, 0);
}

void lent_lock_destroy(struct lent_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

static void lend_to_holder(struct lent_lock *lock)
{
	pid_t holder = atomic_load(&lock->holder);
	struct prio own;

	if (!holder || prio_mode() != PRIO_LEND || !prio_own(&own) ||
	    prio_lowest(&own) || !prio_is_lowest(holder))
		return;
	/* Before the holder can run: it looks when it releases the lock. */
	atomic_store(&lock->lent, holder);
	prio_lend(holder, &own);
}

#ifdef __SANITIZE_THREAD__
/* It does not know pthread_mutex_clocklock(). */
static bool wait_for_mutex(struct lent_lock *lock)
{
	const struct timespec patience = { 0, PATIENCE_NS };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &patience, NULL);
	return !pthread_mutex_trylock(&lock->mutex);
}
#else
static bool wait_for_mutex(struct lent_lock *lock)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PATIENCE_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return !pthread_mutex_clocklock(&lock->mutex, CLOCK_MONOTONIC, &until);
}
#endif

void lent_lock_acquire(struct lent_lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex))
		while (!wait_for_mutex(lock))
			lend_to_holder(lock);
	atomic_store(&lock->holder, gettid());
}

void lent_lock_release(struct lent_lock *lock)
{
	pid_t self = atomic_load(&lock->holder);

	util_assert(self == gettid());
	/* A loan that came too late the last time is not noted any more. */
	job_return_loan(atomic_compare_exchange_strong(&lock->lent, &self, 0));
	atomic_store(&lock->holder, 0);
	pthread_mutex_unlock(&lock->mutex);
}
