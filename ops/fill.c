/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fill: zeroes, or a pattern over and over.
 *
 * Owns the pattern and its phase at chunk edges; how to store is in store.c.
 * A fault while storing is the program's own, as with memset(3).
 */
#include <errno.h>

#include "mapping.h"
#include "store.h"

static int fill_validate(const struct ktask_op_args *args)
{
	const unsigned both = KTASK_STORE_STREAM | KTASK_STORE_CACHED;

	if ((args->flags & both) == both)
		return -EINVAL;
	if (!args->src)
		return args->src_len ? -EINVAL : 0;
	return args->src_len < 1 || args->src_len > STORE_TILE_BYTES ? -EINVAL
								     : 0;
}

static int fill_chunk(void *start, void *end, void *arg)
{
	const struct op_job *job = arg;
	size_t len = (size_t)((char *)end - (char *)start);
	size_t offset = (size_t)((char *)start - job->addr);

	store_tile(start, len, job->state, offset,
		   store_by_stream(job, start, len));
	return 0;
}

static int fill_around(struct op_job *job)
{
	struct store_tile tile;

	if (job->src)
		store_tile_init(&tile, job->src, job->src_len);
	else
		store_tile_init(&tile, "", 1);
	job->state = &tile;
	return op_go(job, fill_chunk);
}

const struct ktask_op op_fill = {
	.name = "fill",
	.summary = "fill memory with zeroes or a pattern",
	.unit = 1,
	.min_chunk = 1 * MIB,
	.known_flags = KTASK_STORE_STREAM | KTASK_STORE_CACHED,
	.align = mapping_align_store,
	.validate = fill_validate,
	.chunk = fill_chunk,
	.around = fill_around,
};
