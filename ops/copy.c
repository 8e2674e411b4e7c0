/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * copy: memory to memory, ranges that do not overlap.
 *
 * Chunk edges follow the destination; how to store is in store.c.  A fault is
 * the program's own, as with memcpy(3).
 */
#include <errno.h>
#include <string.h>

#include "mapping.h"
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

const struct ktask_op op_copy = {
	.name = "copy",
	.summary = "copy memory that does not overlap",
	.unit = 1,
	.min_chunk = 512 * KIB,
	.known_flags = KTASK_STORE_STREAM | KTASK_STORE_CACHED,
	.align = mapping_align_store,
	.validate = copy_validate,
	.chunk = copy_chunk,
};
