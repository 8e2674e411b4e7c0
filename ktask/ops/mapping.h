/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the kernel tells about the mappings of a range, and the chunk edges that follow
 * from it.  Chooses nothing else.
 *
 * Cost (CPU time, Linux 6.18): 4 us and 0.4 us per mapping of the range on kernels with
 * the PROCMAP_QUERY ioctl (6.11).  Before that a text file is read: /proc/self/maps,
 * 1 us per mapping of the process; or smaps, if the page size or the lock is wanted.
 * For smaps the kernel walks the page tables of every mapping up to the range (14 ms per
 * GiB present in 4 KiB pages).  So those kernels are asked for the page size only on
 * machines that have huge pages larger than the usual chunk edge.
 */
#ifndef OPS_MAPPING_H
#define OPS_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op.h"

struct mapping {
	uintptr_t start;
	uintptr_t end;
	bool readable;
	bool writable;
	bool shared;
	bool file; /* or shared memory: it may end before the mapping does */
	bool locked; /* MAPPING_LOCKED only */
	size_t page_bytes; /* 0: unknown; with MAPPING_PAGE */
};

/* mapping_each(): what must be known, beyond range and protection. */
#define MAPPING_PAGE 0x1u
#define MAPPING_LOCKED 0x2u
/* Return -errno rather than walk page tables, or read a text with more lines than a job on
 * this range would gain. */
#define MAPPING_CHEAP 0x4u

/**
 * mapping_visit - called for one mapping
 *
 * Return: 0 to go on; anything else ends the walk.
 */
typedef int (*mapping_visit)(const struct mapping *mapping, void *arg);

/**
 * mapping_each - visit the mappings of this process that overlap [start, end),
 * ascending
 * @want: MAPPING_*
 *
 * Context: opens a file; neither takes nor needs a lock.  The answer may be outdated by
 * the time it returns, if other threads map or unmap.
 *
 * Return: 0; what @visit returned; -errno where the kernel does not tell.
 */
int mapping_each(uintptr_t start, uintptr_t end, unsigned want,
		 mapping_visit visit, void *arg);

/** mapping_is_private - memory of no file that is this process's own, to read and write */
static inline bool mapping_is_private(const struct mapping *mapping)
{
	return mapping->readable && mapping->writable && !mapping->shared &&
	       !mapping->file;
}

/** mapping_all_private - are all mappings in [start, end) such?  False if that is not known;
 * @want and context are those of mapping_each() */
bool mapping_all_private(uintptr_t start, uintptr_t end, unsigned want);

/**
 * mapping_any_locked - has the process locked memory?  True if that is not known
 */
bool mapping_any_locked(void);

/**
 * mapping_align_range - chunk edges for operations on page tables
 *
 * The largest page of the range's mappings, and at least a transparent huge
 * page where those are in use or the range is large: two threads must never
 * make one huge page at the same time, and a discard of a part of a hugetlb
 * page is an error.
 */
void mapping_align_range(struct op_job *job);

/**
 * mapping_align_store - chunk edges for operations that only store
 *
 * As above, but does not read the mappings.  If hugetlb pages are larger than 2 MiB and
 * untouched, two threads may wait for each other; neither does work twice.
 */
void mapping_align_store(struct op_job *job);

/**
 * mapping_first_page - make one page before the others
 * @chunk: makes it; a failure is ignored here, because the chunk will meet it again
 *
 * A mapping without pages gets its anon_vma with the first one, and threads that need it
 * at the same time would queue for it.  If a whole huge page is present after that (it
 * was made, or the memory was present before), a byte costs so little that
 * job->min_chunk is raised.
 */
void mapping_first_page(struct op_job *job, ktask_thread_func chunk);

/** mapping_present - whether the page of @pos is there; about 1 us */
bool mapping_present(const char *pos);

#endif /* OPS_MAPPING_H */
