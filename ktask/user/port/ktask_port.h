/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The user-space host's answer to core/deps.h.
 *
 * Owns only the mapping of names; the functions are in user/user_port.c and
 * user/machine/topo.c.
 */
#ifndef KTASK_PORT_H
#define KTASK_PORT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/trace.h"

#define kt_trace_chunk(start, units, ns) trace_chunk(start, units, ns)

#define KT_CACHE_LINE 64
#define KT_CACHE_ALIGNED __attribute__((aligned(KT_CACHE_LINE)))

#define kt_load(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define kt_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define kt_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define kt_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define kt_cas(p, old, new)                                                 \
	__atomic_compare_exchange_n((p), (old), (new), 0, __ATOMIC_SEQ_CST, \
				    __ATOMIC_RELAXED)
#define kt_add(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))

/* In builds with the address or the thread sanitizer, which report where it was. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KT_ASSERTS 1
#define kt_assert(condition) ((condition) ? (void)0 : __builtin_trap())
#endif

uint64_t kt_now_ns(void);
unsigned kt_node_distance(int a, int b);

/* A futex: 0 free, 1 held, 2 held and somebody sleeps. */
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
