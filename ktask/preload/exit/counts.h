/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the shim has counted in this process, for its report.
 *
 * Locking: there is no lock.  Everything is atomic: several threads may write it at
 * once, and so may a child of vfork(), which shares this memory with its parent.
 */
#ifndef PRELOAD_COUNTS_H
#define PRELOAD_COUNTS_H

#include <stdatomic.h>

#include "preload/shim.h"

/* Calls of one kind that were taken over. */
struct shim_taken {
	atomic_ullong calls;
	atomic_ullong plain; /* of these, left to the plain call after all */
	atomic_ullong bytes; /* of memory that was present, or made present */
	atomic_ullong ns;
	atomic_ullong cpu_ns; /* of all threads */
	atomic_ullong saved_ns;
	atomic_ullong undivided; /* calls that were done as one chunk */
	atomic_ullong present; /* calls on memory that was all present before */
	atomic_uint threads; /* most that worked on one call */
};

/* Calls that were not. */
struct shim_sum {
	atomic_ullong calls;
	atomic_ullong bytes;
};

/* Mappings that were watched, in bytes of memory. */
struct shim_ahead {
	atomic_ullong mappings;
	atomic_ullong bytes;
	atomic_ullong first; /* that may be made before a touch */
	atomic_ullong touched; /* in order */
	atomic_ullong windows; /* in which something was made */
	atomic_ullong made;
	atomic_ullong wasted;
	atomic_ullong advised; /* as huge pages, made by the program itself */
	atomic_ullong cpu_ns; /* that making took */
	/* Mappings in which nothing was made, by the reason. */
	atomic_ullong unhelped, memory, random;
};

struct report_line;

struct shim_counts {
	struct shim_ahead ahead;
	struct shim_taken taken[SHIM_NR_CALLS];
	struct shim_sum would; /* be taken, but for --dry-run */
	struct shim_sum left[SHIM_NR_LEFT]; /* kinds that the kernel does */
	struct shim_sum declined[SHIM_NR_WHY]; /* else taken, but not here */
};

extern struct shim_counts shim_counts;

void shim_counts_reset(void);

/* report_ahead.c: the line on what was made ahead, or with @dry would have been */
void shim_ahead_tell(struct report_line *line, bool dry);

#endif /* PRELOAD_COUNTS_H */
