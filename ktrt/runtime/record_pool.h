/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Records of one size that are used again and again.  Each worker keeps some, and
 * exchanges batches with a list that all share.  Memory is mapped in slabs, and unmapped
 * only when the runtime ends, or, of groups, never.  So a thief may read a record that
 * was freed: it reads stale words, never unmapped memory.
 *
 * Locking:
 *
 *	Q: the pool's lock, which is an innermost one (rt.h)
 *	I: set before others can find it, constant from then on
 *	O: the worker's own thread; of a record that is free: whose cache it is in,
 *	   or Q
 *	A: written under Q, read by any thread: by atomic operations
 */
#ifndef RUNTIME_RECORD_POOL_H
#define RUNTIME_RECORD_POOL_H

#include <pthread.h>
#include <stddef.h>

#include "atomic.h"

#define POOL_BATCH 64

struct record {
	struct record *next; /* in a batch; O */
	union {
		struct record *next_batch; /* of the first of a batch; Q */
		size_t length; /* of the second: of the batch; O */
	};
};

struct pool {
	pthread_mutex_t lock; /* Q */
	struct record *batches; /* Q */
	struct slab *slabs; /* Q */
	size_t size; /* of a record; I */
	size_t bytes; /* of all slabs; A */
};

/* What a worker keeps: up to two batches; O */
struct cache {
	struct record *free;
	struct record *reserve; /* a whole batch, or NULL */
	unsigned nr_free;
};

#define POOL_SIZE(bytes) (((bytes) + 63) & ~(size_t)63)
#define POOL_INIT(bytes)                                                     \
	{                                                                    \
		.lock = PTHREAD_MUTEX_INITIALIZER, .size = POOL_SIZE(bytes), \
	}

void pool_init(struct pool *pool, size_t size);
void pool_destroy(struct pool *pool);

void *pool_get_slow(struct pool *pool, struct cache *cache);
void pool_put_slow(struct pool *pool, struct cache *cache, void *memory);

/* cache_drain - give everything back: its thread ends */
void cache_drain(struct pool *pool, struct cache *cache);

/* pool_bytes - mapped for it */
static inline size_t pool_bytes(const struct pool *pool)
{
	return __atomic_load_n(&pool->bytes, __ATOMIC_RELAXED);
}

/* pool_get - a record that is not cleared; NULL without memory */
static inline void *pool_get(struct pool *pool, struct cache *cache)
{
	struct record *record = cache ? cache->free : NULL;

	if (!record)
		return pool_get_slow(pool, cache);
	cache->free = record->next;
	cache->nr_free--;
	return record;
}

/* pool_put - by any thread; @cache NULL: one that has none */
static inline void pool_put(struct pool *pool, struct cache *cache,
			    void *memory)
{
	struct record *record = memory;

	if (!cache || cache->nr_free >= POOL_BATCH) {
		pool_put_slow(pool, cache, memory);
		return;
	}
	record->next = cache->free;
	cache->free = record;
	cache->nr_free++;
}

#endif /* RUNTIME_RECORD_POOL_H */
