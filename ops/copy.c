/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * copy: memory to memory, ranges that do not overlap.
 *
 * Chunk edges follow the destination; how to store is in store.c.  A fault is
 * the program's own, as with memcpy(3).
 */
#include <errno.h>
#include <string.h>

#include "store.h"

static int copy_validate(const struct ktask_op_args *args)
{
	const unsigned both = KTASK_STORE_STREAM | KTASK_STORE_CACHED;
	uintptr_t dst = (uintptr_t)args->addr, src = (uintptr_t)args->src;

	if ((args->flags & both) == both || args->src_len)
		return -EINVAL;
	if (!args->len)
		return 0;
	if (!src || args->len > UINTPTR_MAX - src)
		return -EINVAL;
	return (dst < src ? src - dst : dst - src) < args->len ? -EINVAL : 0;
}

static int copy_chunk(void *start, void *end, void *arg)
{
	const struct op_job *job = arg;
	size_t len = (size_t)((char *)end - (char *)start);
	const char *src = job->src + ((char *)start - job->addr);

	if (store_by_stream(job, start, len))
		store_stream_copy(start, src, len);
	else
		memcpy(start, src, len);
	return 0;
}

/*
 * min_chunk    32K   64K  128K  256K  512K    1M    2M    4M    8M   16M
 * untouched, 4 KiB pages
 *   1 thread    24    51    98   192   331   677  1394  2954  6166 12912
 *   2 threads   32    44    79   127   231   437   759  1542  3249  6773
 * touched
 *   1 thread     2     2     5     9    21    46    93   309   702  1367
 *   2 threads    9    10    12    17    28    48    73   212   632  1370
 *
 * store_align() raises min_chunk for touched memory.
 */
const struct ktask_op op_copy = {
	.name = "copy",
	.summary = "copy memory that does not overlap",
	.unit = 1,
	.min_chunk = 128 * KIB,
	.known_flags = KTASK_STORE_STREAM | KTASK_STORE_CACHED,
	.makes_pages = true,
	.align = store_align,
	.validate = copy_validate,
	.chunk = copy_chunk,
};
