/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Private memory that is locked beside memory which is locked already: both become one
 * mapping, as by the plain call.
 *
 * The kernel joins two mappings only if their flags are the same, and if they have the
 * same anon_vma, or one of them has none.  A mapping gets its anon_vma with its first
 * page.  The plain call joins the mappings while the new one has no page.  The library
 * makes pages while memory is locked on fault, which is another flag, so the new memory
 * would get an anon_vma that no neighbour has.
 *
 * So what lies at the edge is locked by a plain call first.  It joins the neighbour, and
 * its pages get the neighbour's anon_vma.  When the whole range is locked on fault again
 * the edge leaves the neighbour, joins the rest of the range, which has no page yet, and
 * hands its anon_vma on.  The last plain call then finds two mappings that it can join.
 *
 * Behaves badly: two mappings that are alike and apart are taken to differ in being
 * locked.  If memory with both neighbours joins the upper one only, it stays apart.
 * Private mappings of files stay apart, too.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "ops/mapping.h"
#include "preload/shim.h"
#include "util/scoped.h"

/* A transparent huge page, which one small page at the edge would prevent. */
#define HUGE_BYTES ((uintptr_t)2 << 20)

/* A range, the mappings at both of its ends, and those beside it.  No end: there is
 * none. */
struct range_ends {
	uintptr_t start, end;
	struct mapping below, first, last, above;
};

static int note_ends(const struct mapping *mapping, void *arg)
{
	struct range_ends *ends = arg;

	if (mapping->end == ends->start)
		ends->below = *mapping;
	if (mapping->start == ends->end)
		ends->above = *mapping;
	if (mapping->start <= ends->start && mapping->end > ends->start)
		ends->first = *mapping;
	if (mapping->start < ends->end && mapping->end >= ends->end)
		ends->last = *mapping;
	return 0;
}

static bool is_private(const struct mapping *mapping)
{
	return mapping->end && mapping_is_private(mapping);
}

/* From an edge on, upwards or downwards, but no more than the whole range. */
static size_t edge_bytes(const struct range_ends *ends, uintptr_t edge)
{
	size_t len = ends->end - ends->start;
	size_t bytes =
		edge % HUGE_BYTES ? (size_t)sysconf(_SC_PAGESIZE) : HUGE_BYTES;

	return bytes < len ? bytes : len;
}

static void lock_edges(const struct range_ends *ends, bool below, bool above)
{
	size_t first = edge_bytes(ends, ends->start);
	size_t last = edge_bytes(ends, ends->end);

	if (below)
		(void)real_mlock((void *)ends->start, first);
	if (above)
		(void)real_mlock((void *)(ends->end - last), last);
}

void shim_lock_beside(const void *base, size_t len)
{
	const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct range_ends ends = { .start = (uintptr_t)base };
	bool below, above;
	keep_errno();

	/* The list of mappings is a file, and the memory is locked in several steps. */
	shim_stay_quiet();
	ends.end = (ends.start + len + page_bytes - 1) & ~(page_bytes - 1);
	if (ends.end <= ends.start ||
	    mapping_each(ends.start - page_bytes, ends.end + page_bytes,
			 MAPPING_CHEAP, note_ends, &ends))
		return;
	below = is_private(&ends.below) && is_private(&ends.first);
	above = is_private(&ends.above) && is_private(&ends.last);
	/* The lower neighbour is the one that the kernel chooses. */
	if (below && ends.first.end >= ends.end)
		above = false;
	/* Tells whether the limit allows all of it, and whether there is a hole. */
	if ((below || above) &&
	    !real_mlock2(base, ends.end - ends.start, MLOCK_ONFAULT))
		lock_edges(&ends, below, above);
}
