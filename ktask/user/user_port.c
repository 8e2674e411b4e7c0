/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The functions that core/deps.h asks of the user-space host: the clock and the
 * iterator lock, a futex.  Node distances are user/machine/topo.c's.
 *
 * Locking: the word of an iterator's lock is written by any thread, by atomic operations.
 */
#include "core/deps.h"
#include "util/clock.h"
#include "util/futex.h"

uint64_t kt_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Drepper's second mutex ("Futexes are tricky", 2011). */
void kt_iter_lock(kt_iter_lock_t *lock)
{
	uint32_t word = 0;

	if (__atomic_compare_exchange_n(&lock->word, &word, 1, 0,
					__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE))
		futex_wait(&lock->word, 2, 0);
}

void kt_iter_unlock(kt_iter_lock_t *lock)
{
	if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2)
		futex_wake(&lock->word, 1);
}
