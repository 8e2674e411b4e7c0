/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * discard: give the pages of a range back to the kernel.
 *
 * As madvise(2) does, it goes on past unmapped memory and reports it in the
 * end, and stops at memory that cannot be discarded (locked, or of a kind
 * that the advice is not for).  In the second case parts above that position
 * may be gone already, where the plain call would have kept them.
 */
#include <errno.h>
#include <sys/mman.h>

#include "advise.h"
#include "mapping.h"

static int advice_of(const struct op_job *job)
{
	return job->flags & KTASK_DISCARD_FREE ? MADV_FREE : MADV_DONTNEED;
}

static int discard_chunk(void *start, void *end, void *arg)
{
	struct op_job *job = arg;
	uintptr_t bad;
	int error =
		advise((uintptr_t)start, (uintptr_t)end, advice_of(job), &bad);

	if (error == -ENOMEM) {
		op_note_suspect(job, bad);
		return 0;
	}
	if (error)
		ktask_fail_at((void *)bad);
	return error;
}

static int discard_around(struct op_job *job)
{
	int error = op_go(job, discard_chunk);
	uintptr_t hole = op_suspect(job);

	if (error || !hole)
		return error;
	return op_fail(job, -ENOMEM, (void *)hole);
}

const struct ktask_op op_discard = {
	.name = "discard",
	.summary = "give the pages of a range back to the kernel",
	.min_chunk = 4 * MIB,
	.known_flags = KTASK_DISCARD_FREE,
	.align = mapping_align_range,
	.chunk = discard_chunk,
	.around = discard_around,
};
