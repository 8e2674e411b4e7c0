/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Pools of arrays, each twice as large as those of the one before.  Larger ones come from
 * malloc().
 *
 * Locking: access_arrays.h.
 */
#include <stdlib.h>

#include "access_arrays.h"
#include "dependences.h"

#define LEAST_BYTES 256

/* ->pool is ACCESS_POOLS: of none. */
struct access_array {
	uint64_t pool; /* M */
	struct access each[];
};

static size_t array_bytes(size_t nr)
{
	return sizeof(struct access_array) + nr * sizeof(struct access);
}

static unsigned pool_for(size_t nr)
{
	unsigned pool = 0;

	while (pool < ACCESS_POOLS &&
	       (size_t)LEAST_BYTES << pool < array_bytes(nr))
		pool++;
	return pool;
}

void access_arrays_init(void)
{
	for (unsigned i = 0; i < ACCESS_POOLS; i++)
		pool_init(&rt.arrays[i], (size_t)LEAST_BYTES << i);
}

void access_arrays_destroy(void)
{
	for (unsigned i = 0; i < ACCESS_POOLS; i++)
		pool_destroy(&rt.arrays[i]);
}

size_t access_arrays_bytes(void)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < ACCESS_POOLS; i++)
		bytes += pool_bytes(&rt.arrays[i]);
	return bytes;
}

void access_arrays_drain(struct worker *w)
{
	for (unsigned i = 0; i < ACCESS_POOLS; i++)
		cache_drain(&rt.arrays[i], &w->arrays[i]);
}

struct access *access_array_get(struct worker *w, size_t nr)
{
	unsigned pool = pool_for(nr);
	struct access_array *array =
		pool < ACCESS_POOLS
			? pool_get(&rt.arrays[pool], &w->arrays[pool])
			: malloc(array_bytes(nr));

	if (!array)
		return NULL;
	array->pool = pool;
	return array->each;
}

void access_array_put(struct worker *w, struct access *each)
{
	struct access_array *array =
		(struct access_array *)((char *)each -
					offsetof(struct access_array, each));
	uint64_t pool = array->pool;

	if (unlikely(pool == ACCESS_POOLS))
		free(array);
	else
		pool_put(&rt.arrays[pool], w ? &w->arrays[pool] : NULL, array);
}
