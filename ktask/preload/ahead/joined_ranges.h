/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where the shim has taken back its advice on huge pages.
 *
 * No advice restores the state without advice, so to the kernel such memory differs from
 * what the program maps beside it.  If the program maps a part of it anew, the plain kernel
 * joins that part with the rest, and mremap() may move both together.  With the shim it
 * does so only if the new part gets the same advice while no page of it is present: from
 * the first touch on the part has an anon_vma of its own, which prevents joining.
 *
 * MADV_COLLAPSE refuses such memory as well, so that advice is lifted around it.
 *
 * Behaves badly: ranges are forgotten if there are many, or if another thread uses the
 * table at the same moment.  Then a part that is mapped anew is not joined, and
 * MADV_COLLAPSE fails.  Nor is a part joined that the kernel locks, and so populates, while
 * it maps it.
 *
 * Locking: a flag protects the table.  Nobody waits for it, because the holder may be a
 * thread that a signal handler interrupted.
 */
#ifndef KT_PRELOAD_JOINED_RANGES_H
#define KT_PRELOAD_JOINED_RANGES_H

#include <stdbool.h>
#include <stdint.h>

/* joined_ranges_add - advice was taken back in [@start, @end) */
void joined_ranges_add(uintptr_t start, uintptr_t end);

/* joined_ranges_drop - [@start, @end) was unmapped.  A range keeps its holes: what is mapped
 * there is beside the rest. */
void joined_ranges_drop(uintptr_t start, uintptr_t end);

/* joined_ranges_cut - the program has advised [@start, @end) itself */
void joined_ranges_cut(uintptr_t start, uintptr_t end);

/*
 * joined_ranges_next - find the next part of [*@at, @end) that is in a range
 * @at: set to where it begins
 * @to: set to where it ends
 *
 * Return: false if there is none.
 */
bool joined_ranges_next(uintptr_t *at, uintptr_t end, uintptr_t *to);

/* joined_ranges_touch - does [@start, @end) overlap or adjoin a range? */
bool joined_ranges_touch(uintptr_t start, uintptr_t end);

/* joined_ranges_forked - in the child of a fork: no thread is using the table any more */
void joined_ranges_forked(void);

#endif /* KT_PRELOAD_JOINED_RANGES_H */
