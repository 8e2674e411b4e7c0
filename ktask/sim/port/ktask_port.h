/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The simulated host's answer to core/deps.h.
 *
 * Every access to memory that threads share is a point at which the simulated
 * scheduler may run another thread.  Memory is sequentially consistent: what
 * the simulation cannot find is a barrier that is too weak.
 */
#ifndef KTASK_PORT_H
#define KTASK_PORT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KT_CACHE_ALIGNED __attribute__((aligned(64)))

void sim_point(void);

#define kt_load(p) (sim_point(), *(p))
#define kt_store(p, v) (sim_point(), (void)(*(p) = (v)))
#define kt_load_acquire(p) kt_load(p)
#define kt_store_release(p, v) kt_store(p, v)
#define kt_add(p, v) (sim_point(), (void)(*(p) += (v)))
#define kt_cas(p, old, new)                                             \
	(sim_point(), *(p) == *(old) ? (*(p) = (new), true) /* taken */ \
				     : (*(old) = *(p), false))

/* Ends the run, which then tells its seed. */
void sim_broken(const char *rule, const char *file, int line);

#define kt_assert(condition) \
	((condition) ? (void)0 : sim_broken(#condition, __FILE__, __LINE__))

uint64_t kt_now_ns(void);
unsigned kt_node_distance(int a, int b);

typedef struct {
	bool held;
} kt_iter_lock_t;

static inline void kt_iter_lock_init(kt_iter_lock_t *lock)
{
	lock->held = false;
}

void kt_iter_lock(kt_iter_lock_t *lock);
void kt_iter_unlock(kt_iter_lock_t *lock);

#endif /* KTASK_PORT_H */
