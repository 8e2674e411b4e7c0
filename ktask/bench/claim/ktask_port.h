/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * core/deps.h on a host that counts: compare-and-swaps that had to be repeated.
 * The straight path has no instruction more for it.
 */
#ifndef KTASK_PORT_H
#define KTASK_PORT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KT_CACHE_ALIGNED __attribute__((aligned(64)))

extern __thread uint64_t claim_retries;

#define kt_load(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define kt_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define kt_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define kt_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define kt_add(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))
#define kt_cas(p, old, new)                                                  \
	(__atomic_compare_exchange_n((p), (old), (new), 0, __ATOMIC_SEQ_CST, \
				     __ATOMIC_RELAXED) ||                    \
	 (claim_retries++, false))

uint64_t kt_now_ns(void);
unsigned kt_node_distance(int a, int b);

typedef struct {
	uint32_t word;
} kt_iter_lock_t;

static inline void kt_iter_lock_init(kt_iter_lock_t *lock)
{
	lock->word = 0;
}

void kt_iter_lock(kt_iter_lock_t *lock);
void kt_iter_unlock(kt_iter_lock_t *lock);

#endif /* KTASK_PORT_H */
