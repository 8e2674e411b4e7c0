/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's answer to core/deps.h.
 *
 * Owns only the mapping of names; the functions are in kernel/engine/kernel_port.c.  Needs a
 * 64-bit kernel: core/ divides 64-bit numbers.
 */
#ifndef KTASK_PORT_H
#define KTASK_PORT_H

#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/cache.h>
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/mutex.h>
#include <linux/stddef.h>
#include <linux/types.h>

#ifndef CONFIG_64BIT
#error "ktask needs a 64-bit kernel"
#endif

#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif
#ifndef UINTPTR_MAX
#define UINTPTR_MAX ULONG_MAX
#endif

#define KT_CACHE_ALIGNED __aligned(SMP_CACHE_BYTES)

#define kt_load(p) READ_ONCE(*(p))
#define kt_store(p, v) WRITE_ONCE(*(p), (v))
#define kt_load_acquire(p) smp_load_acquire(p)
#define kt_store_release(p, v) smp_store_release(p, v)
#define kt_cas(p, old, new) try_cmpxchg(p, old, new)

/* The kernel's atomics have types of their own, of the same layout. */
static inline void kt_add_u32(uint32_t *p, uint32_t v)
{
	atomic_add((int)v, (atomic_t *)p);
}

static inline void kt_add_u64(uint64_t *p, uint64_t v)
{
	atomic64_add((s64)v, (atomic64_t *)p);
}

#define kt_add(p, v) \
	_Generic((p), uint32_t * : kt_add_u32, uint64_t * : kt_add_u64)(p, v)

/* Debug kernels check the assertions of this code as well. */
#ifdef CONFIG_PROVE_LOCKING
#define kt_assert(condition) WARN_ON_ONCE(!(condition))
#endif

#include "kernel/kernel_trace.h"

#define kt_trace_chunk(start, units, ns) trace_ktask_chunk(start, units, ns)

static inline uint64_t kt_now_ns(void)
{
	return ktime_get_ns();
}

unsigned int kt_node_distance(int a, int b);

/* Locking: core/ holds it while it calls an iterator, which may sleep. */
typedef struct {
	struct mutex mutex;
} kt_iter_lock_t;

static inline void kt_iter_lock_init(kt_iter_lock_t *lock)
{
	mutex_init(&lock->mutex);
}

void kt_iter_lock(kt_iter_lock_t *lock);
void kt_iter_unlock(kt_iter_lock_t *lock);

#endif /* KTASK_PORT_H */
