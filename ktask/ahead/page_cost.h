/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Do huge pages take longer to make than as much memory in small pages?
 *
 * They do where a host has taken back free memory, because it does so in whole blocks.
 * Other huge pages take a fifth of the time of small ones, so a few slow ones are no
 * reason to make none.  Huge pages count as slow if most of them were slow and all
 * together took longer than small ones.  They are compared with recent small pages only:
 * once these are as slow, huge pages are tried again.
 *
 * Knows no clock.  Not thread-safe: the watcher's.
 */
#ifndef AHEAD_PAGE_COST_H
#define AHEAD_PAGE_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_cost {
	uint64_t cpu_ns;
	size_t nr_pages; /* small ones, or as many as a huge page has */
};

/* Of pages that can be compared: all made by helpers, or all by the program. */
struct page_costs {
	struct page_cost small; /* the last ones */
	struct page_cost huge; /* all */
	size_t slow_pages; /* of the huge ones, that took longer than small ones */
};

void page_costs_note_small(struct page_costs *costs, uint64_t cpu_ns,
			   size_t nr_pages);

/* @slow_pages: of @nr_pages, as found by page_costs_limit_ns() */
void page_costs_note_huge(struct page_costs *costs, uint64_t cpu_ns,
			  size_t nr_pages, size_t slow_pages);

/* CPU time of so many small pages; UINT64_MAX: not known. */
uint64_t page_costs_limit_ns(const struct page_costs *costs, size_t nr_pages);

/* Once enough of them were made. */
bool page_costs_huge_is_slow(const struct page_costs *costs);

/* What the whole program has used and touched, in all mappings that are watched. */
struct touch_effort {
	uint64_t cpu_ns;
	size_t pages, faults;
};

/**
 * page_costs_note_touches - the program made pages itself between two moments
 *
 * The number of faults tells how many of the pages were huge.  CPU time and faults are
 * known only for the whole program, so the pages must be those of all its mappings.  Two
 * threads may make huge pages and small ones at once: then the small ones are taken to
 * cost what the last small ones did.
 *
 * Return: false, with @then unchanged, if the program used too little CPU time to tell.
 */
bool page_costs_note_touches(struct page_costs *costs,
			     const struct touch_effort *then,
			     const struct touch_effort *now);

#endif /* AHEAD_PAGE_COST_H */
