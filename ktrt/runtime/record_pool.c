/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Records: slabs, and the list of batches that all workers share.
 *
 * Locking: record_pool.h.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "record_pool.h"

#define SLAB_BYTES ((size_t)128 << 10)
#define SLAB_HEAD 64

struct slab {
	struct slab *next;
};

void pool_init(struct pool *pool, size_t size)
{
	pthread_mutex_init(&pool->lock, NULL);
	pool->batches = NULL;
	pool->slabs = NULL;
	pool->bytes = 0;
	pool->size = POOL_SIZE(size);
}

void pool_destroy(struct pool *pool)
{
	struct slab *slab = pool->slabs, *next;

	for (; slab; slab = next) {
		next = slab->next;
		munmap(slab, SLAB_BYTES);
	}
	pool->slabs = NULL;
	pthread_mutex_destroy(&pool->lock);
}

/* Records have no room for more than two words that thieves do not read. */
static unsigned batch_length(const struct record *batch)
{
	return batch->next ? (unsigned)batch->next->length : 1;
}

static void set_length(struct record *batch, unsigned nr)
{
	if (batch->next)
		batch->next->length = nr;
}

static void add_batch(struct pool *pool, struct record *batch, unsigned nr)
{
	rt_assert_locked(RANK_INNER);
	set_length(batch, nr);
	batch->next_batch = pool->batches;
	pool->batches = batch;
}

static struct record *take_batch(struct pool *pool)
{
	struct record *batch = pool->batches;

	rt_assert_locked(RANK_INNER);
	if (batch)
		pool->batches = batch->next_batch;
	return batch;
}

/* Cut a new slab into batches; the last one may be smaller. */
static void add_slab(struct pool *pool)
{
	char *memory = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct slab *slab = (struct slab *)memory;
	struct record *batch = NULL;
	unsigned nr = 0;
	size_t at;

	rt_assert_locked(RANK_INNER);
	if (memory == MAP_FAILED)
		return;
	slab->next = pool->slabs;
	pool->slabs = slab;
	__atomic_fetch_add(&pool->bytes, SLAB_BYTES, __ATOMIC_RELAXED);
	for (at = SLAB_HEAD; at + pool->size <= SLAB_BYTES; at += pool->size) {
		struct record *record = (struct record *)(memory + at);

		record->next = batch;
		batch = record;
		if (++nr == POOL_BATCH) {
			add_batch(pool, batch, nr);
			batch = NULL;
			nr = 0;
		}
	}
	if (batch)
		add_batch(pool, batch, nr);
}

/* A thread without a cache takes one record, and puts back the others. */
static struct record *split_batch(struct pool *pool, struct record *batch)
{
	unsigned nr = batch_length(batch);

	if (nr > 1)
		add_batch(pool, batch->next, nr - 1);
	return batch;
}

void *pool_get_slow(struct pool *pool, struct cache *cache)
{
	struct record *batch = cache ? cache->reserve : NULL;

	if (batch) {
		cache->reserve = NULL;
	} else {
		mutex_take(&pool->lock, RANK_INNER);
		batch = take_batch(pool);
		if (!batch) {
			add_slab(pool);
			batch = take_batch(pool);
		}
		if (batch && !cache)
			batch = split_batch(pool, batch);
		mutex_drop(&pool->lock, RANK_INNER);
	}
	if (batch && cache) {
		cache->free = batch->next;
		cache->nr_free = batch_length(batch) - 1;
	}
	return batch;
}

void pool_put_slow(struct pool *pool, struct cache *cache, void *memory)
{
	struct record *record = memory;
	struct record *full = NULL;

	record->next = NULL;
	if (cache) {
		full = cache->reserve;
		cache->reserve = cache->free;
		set_length(cache->reserve, POOL_BATCH);
		cache->free = record;
		cache->nr_free = 1;
	} else {
		full = record;
	}
	if (!full)
		return;
	mutex_take(&pool->lock, RANK_INNER);
	add_batch(pool, full, cache ? POOL_BATCH : 1);
	mutex_drop(&pool->lock, RANK_INNER);
}

void cache_drain(struct pool *pool, struct cache *cache)
{
	mutex_take(&pool->lock, RANK_INNER);
	if (cache->free)
		add_batch(pool, cache->free, cache->nr_free);
	if (cache->reserve)
		add_batch(pool, cache->reserve, POOL_BATCH);
	mutex_drop(&pool->lock, RANK_INNER);
	cache->free = cache->reserve = NULL;
	cache->nr_free = 0;
}
