/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Assertions for layers above the hosts; those below have kt_assert().  They are evaluated
 * in builds with the address or the thread sanitizer, which report where one failed.
 * Elsewhere they cost nothing.
 */
#ifndef KTASK_UTIL_ASSERTION_H
#define KTASK_UTIL_ASSERTION_H

#include <errno.h>
#include <pthread.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define util_assert(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define util_assert(condition) ((void)sizeof(!(condition)))
#endif

/* Is the lock held?  Does not check that this thread holds it. */
static inline void util_assert_held(pthread_mutex_t *lock)
{
	util_assert(pthread_mutex_trylock(lock) == EBUSY);
}

#endif /* KTASK_UTIL_ASSERTION_H */
