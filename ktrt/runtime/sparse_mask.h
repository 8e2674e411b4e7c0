/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A sparse mask: flags of which only a few share a cache line.  So setting a flag seldom
 * takes the line from a thread that sets another, while a search still reads several at
 * once.  Each flag is a byte, and a line has eight of them: setting one is a plain
 * store, reading eight is one load.
 *
 * The idea is that of the kernel's proposed sparse mask of overloaded CPUs
 * (Sistare, "steal tasks to improve CPU utilization", 2018).
 *
 * Locking: there is no lock.  The declaration of a mask (runtime_state.h) says who writes its flags.
 * Any thread reads them: by atomic operations.
 */
#ifndef RUNTIME_SPARSE_MASK_H
#define RUNTIME_SPARSE_MASK_H

#include <stddef.h>

#include "atomic.h"

#define MASK_PER_LINE 8

union mask_line {
	CACHE_ALIGNED uint8_t flags[MASK_PER_LINE];
	uint64_t all;
};

static inline size_t mask_bytes(unsigned nr)
{
	return (nr / MASK_PER_LINE + 1) * sizeof(union mask_line);
}

static inline uint8_t *mask_flag(union mask_line *lines, unsigned index)
{
	return &lines[index / MASK_PER_LINE].flags[index % MASK_PER_LINE];
}

/*
 * mask_next - the first flag in [from, end) that is set; @end if none is
 */
static inline unsigned mask_next(union mask_line *lines, unsigned from,
				 unsigned end)
{
	while (from < end) {
		if (!(from % MASK_PER_LINE) &&
		    !at_load_seq(&lines[from / MASK_PER_LINE].all)) {
			from += MASK_PER_LINE;
			continue;
		}
		if (at_load_seq(mask_flag(lines, from)))
			return from;
		from++;
	}
	return end;
}

#endif /* RUNTIME_SPARSE_MASK_H */
