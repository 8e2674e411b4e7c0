/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * madvise(2) on a chunk, with the exact position of a failure.
 */
#ifndef OPS_ADVISE_H
#define OPS_ADVISE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/memory_advice.h"

/**
 * advise_known - does the kernel know @advice?
 *
 * Calls madvise() with length 0, which checks the advice and nothing else.
 */
bool advise_known(int advice);

/**
 * advise_range - madvise() over [start, end), tried again where that makes sense
 * @fail_pos: on failure set to the first page for which it fails
 *
 * Finds the position by repeating the call on [start, x) and bisecting x.  That is correct
 * for calls that work upwards, and repeats only what the first call did before it failed.
 *
 * Return: 0 or -errno.
 */
int advise_range(uintptr_t start, uintptr_t end, int advice,
		 uintptr_t *fail_pos);

struct op_job;

/**
 * advise_chunk - the same in a chunk of a job, to which it reports where it failed
 * @passable: an error after which the job goes on, and that is only noted; 0: none
 */
int advise_chunk(struct op_job *job, uintptr_t start, uintptr_t end, int advice,
		 int passable);

#endif /* OPS_ADVISE_H */
