/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All that core/ needs from its host.
 *
 * core/ is pure C: no OS header, no allocation, no thread.  All of core/ and engine/
 * includes this header.  Each host puts one ktask_port.h on the include path, which
 * supplies the names below:
 *
 *	user/port/			the library
 *	kernel/port/			the module, or a kernel that ktask is built into
 *	sim/port/			the simulation
 *	tests/build/freestanding/	a test: no more than this page asks for
 *	bench/claim/			a benchmark that counts repeated claims
 *
 * Code that runs on one host only may use more of what its port defines; core/ and
 * engine/ must not.  Linking core/ may leave undefined only kt_now_ns,
 * kt_node_distance, kt_iter_lock, kt_iter_unlock and what a compiler emits by itself
 * (memcpy, memset).
 *
 * Types       uint32_t uint64_t int64_t uintptr_t size_t bool
 * Errors      EINVAL EAGAIN ECANCELED ETIMEDOUT, as positive numbers
 * Layout      KT_CACHE_ALIGNED: attribute for a member on its own cache line
 * Memory      kt_load(p), kt_store(p, v)           relaxed, no tearing
 *             kt_load_acquire(p), kt_store_release(p, v)
 *             kt_cas(p, &old, new) -> bool         full order; old updated
 *             kt_add(p, v)                         relaxed
 *             (all on uint32_t and uint64_t)
 * Time        uint64_t kt_now_ns(void)             monotonic
 * Nodes       unsigned kt_node_distance(int a, int b)
 *             as the firmware counts: 10 local; any node id may be passed
 * Iterators   kt_iter_lock_t, kt_iter_lock_init(l), kt_iter_lock(l),
 *             kt_iter_unlock(l): held while a client's iterator runs, by one
 *             thread of one range; never by jobs without an iterator
 * Tracing     kt_trace_chunk(start, units, ns), optional: a chunk succeeded
 * Assertions  kt_assert(condition), optional: if a rule of this code is broken it
 *             ends the program, or warns in a kernel.  Conditions have no side effect.
 *             By default they are compiled and not evaluated.
 */
#ifndef KTASK_CORE_DEPS_H
#define KTASK_CORE_DEPS_H

#include "ktask_port.h"

#ifndef kt_trace_chunk
#define kt_trace_chunk(start, units, ns) ((void)0)
#endif

#ifndef kt_assert
#define kt_assert(condition) ((void)sizeof(!(condition)))
#endif

#define KT_NO_NODE (-1)

/* Each argument is evaluated once: many are read from memory that other threads
 * and processes write, where a second reading could pass the bound. */
#define KT_MIN(a, b) KT_PICK(a, <, b, KT_UNIQUE(kt_a), KT_UNIQUE(kt_b))
#define KT_MAX(a, b) KT_PICK(a, >, b, KT_UNIQUE(kt_a), KT_UNIQUE(kt_b))

/* Names of their own let calls nest without hiding one another's. */
#define KT_PICK(a, op, b, x, y)                                    \
	({                                                         \
		__typeof__((a)op(b) ? (a) : (b)) x = (a), y = (b); \
		x op y ? x : y;                                    \
	})
#define KT_UNIQUE(prefix) KT_JOIN(prefix, __COUNTER__)
#define KT_JOIN(a, b) KT_JOIN_TOKENS(a, b)
#define KT_JOIN_TOKENS(a, b) a##b

#endif /* KTASK_CORE_DEPS_H */
