/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fill: zeroes, or a pattern over and over.
 *
 * Owns the pattern and its phase at chunk edges; how to store is in store.c.
 * A fault while storing is the program's own, as with memset(3).
 */
#include <errno.h>

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
	return op_run_job(job, fill_chunk);
}

/*
 * min_chunk    32K   64K  128K  256K  512K    1M    2M    4M    8M   16M
 * untouched, 4 KiB pages
 *   1 thread    23    50    94   183   361   723  1434  2912  5833 11869
 *   2 threads   37    51    76   125   221   413   755  1491  3011  6238
 * touched
 *   1 thread     2     2     3     5     9    19    36    70   154   501
 *   2 threads    9     9    10    13    17    27    43    68   174   469
 *
 * One thread saturates this machine's memory, so touched memory gains little
 * even then; store_align() raises min_chunk for it.
 */
const struct ktask_op op_fill = {
	.name = "fill",
	.summary = "fill memory with zeroes or a pattern",
	.unit = 1,
	.min_chunk = 128 * KIB,
	.known_flags = KTASK_STORE_STREAM | KTASK_STORE_CACHED,
	.makes_pages = true,
	.align = store_align,
	.validate = fill_validate,
	.chunk = fill_chunk,
	.around = fill_around,
};
