/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Storing large amounts: which kind of stores is fastest, and how to make them.  fill
 * uses it.  Knows nothing of jobs beyond their flags and size.
 */
#ifndef OPS_STORE_H
#define OPS_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "op.h"

/**
 * store_align - the align step of operations that store
 *
 * Also raises job->min_chunk where the memory seems to be touched already.
 */
void store_align(struct op_job *job);

/**
 * store_by_stream - whether a chunk shall be stored past the caches
 *
 * The flag of the caller, else by measurement (in store.c).
 */
bool store_by_stream(const struct op_job *job, const char *start, size_t len);

#define STORE_TILE_BYTES 4096
#define STORE_STEP_BYTES 64

/**
 * struct store_tile - a pattern, repeated so that any 64 bytes can be taken
 *
 * @period: bytes after which it repeats: a multiple of the pattern's length,
 *	from STORE_STEP_BYTES to STORE_TILE_BYTES
 */
struct store_tile {
	size_t period;
	bool uniform; /* one byte, over and over */
	char bytes[STORE_TILE_BYTES + STORE_STEP_BYTES];
};

/**
 * store_tile_init - @len bytes of @pattern, 1 to STORE_TILE_BYTES
 */
void store_tile_init(struct store_tile *tile, const char *pattern, size_t len);

/**
 * store_tile - fill with the pattern; its stores are visible to every thread
 * @phase: offset of dst[0] in the endless pattern
 */
void store_tile(char *dst, size_t len, const struct store_tile *tile,
		size_t phase, bool stream);

#endif /* OPS_STORE_H */
