/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * unlock: munlock(2), by the caller alone.
 *
 * Several threads would not be faster: the kernel walks the pages while it holds the lock
 * of the address space for writing, and each chunk would temporarily be a mapping of its
 * own.  1 GiB of 4 KiB pages: 28 ms, by two threads 32.
 *
 * Owns finding out where it failed.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mapping.h"

/* Past the C library, whose name the preload shim takes over. */
static int unlock_chunk(void *start, void *end, void *arg)
{
	return syscall(SYS_munlock, start, (char *)end - (char *)start) ? -errno
									: 0;
}

static int follow_mapping(const struct mapping *mapping, void *arg)
{
	uintptr_t *pos = arg;

	if (mapping->start > *pos)
		return 1;
	*pos = mapping->end;
	return 0;
}

static int unlock_around(struct op_job *job)
{
	uintptr_t start = (uintptr_t)job->addr, pos = start;
	int error = op_run_whole(job, unlock_chunk);

	if (error != -ENOMEM)
		return error;
	mapping_each(start, start + job->len, 0, follow_mapping, &pos);
	return op_fail(job, error,
		       (void *)(pos < start + job->len ? pos : start));
}

/* Nothing is divided. */
const struct ktask_op op_unlock = {
	.name = "unlock",
	.summary = "unlock a range, by the caller alone",
	.min_chunk = 32 * MIB,
	.align = mapping_align_store,
	.chunk = unlock_chunk,
	.around = unlock_around,
};
