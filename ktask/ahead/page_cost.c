/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See page_cost.h. */
#include "ahead/ahead_window.h"
#include "ahead/page_cost.h"

/* If helpers made fewer pages of a window, most of their time was overhead. */
#define LEAST_PAGES (AHEAD_BLOCK_PAGES / 4)
/* Huge pages are judged after 16 MiB, small ones by their last 16 to 32. */
#define JUDGED_PAGES (8 * AHEAD_BLOCK_PAGES)
/* The kernel counts CPU time at each tick: a shorter difference says nothing. */
#define EFFORT_NS 8000000
/* If faults are at most 1 / HUGE_RATIO of all pages, most are huge; windows of huge pages
 * have a block of small ones.  If faults are at least SMALL_PERCENT of all pages, most are
 * small. */
#define HUGE_RATIO 3
#define SMALL_PERCENT 75

static uint64_t mean_ns(const struct page_cost *cost)
{
	return cost->cpu_ns / cost->nr_pages;
}

void page_costs_note_small(struct page_costs *costs, uint64_t cpu_ns,
			   size_t nr_pages)
{
	if (nr_pages < LEAST_PAGES)
		return;
	if (costs->small.nr_pages >= 2 * JUDGED_PAGES) {
		costs->small.cpu_ns /= 2;
		costs->small.nr_pages /= 2;
	}
	costs->small.cpu_ns += cpu_ns;
	costs->small.nr_pages += nr_pages;
}

void page_costs_note_huge(struct page_costs *costs, uint64_t cpu_ns,
			  size_t nr_pages, size_t slow_pages)
{
	if (nr_pages < LEAST_PAGES)
		return;
	costs->huge.cpu_ns += cpu_ns;
	costs->huge.nr_pages += nr_pages;
	costs->slow_pages += slow_pages < nr_pages ? slow_pages : nr_pages;
}

uint64_t page_costs_limit_ns(const struct page_costs *costs, size_t nr_pages)
{
	return costs->small.nr_pages ? mean_ns(&costs->small) * nr_pages
				     : UINT64_MAX;
}

bool page_costs_huge_is_slow(const struct page_costs *costs)
{
	return costs->huge.nr_pages >= JUDGED_PAGES && costs->small.nr_pages &&
	       costs->slow_pages > costs->huge.nr_pages / 2 &&
	       mean_ns(&costs->huge) >= mean_ns(&costs->small);
}

/* Each huge page took one fault.  The other faults made small pages, which are assumed to
 * cost what recent ones did. */
static void note_mixture(struct page_costs *costs, uint64_t cpu_ns,
			 size_t pages, size_t faults)
{
	size_t nr_huge = (pages - faults) / (AHEAD_BLOCK_PAGES - 1);
	size_t huge_pages = nr_huge * AHEAD_BLOCK_PAGES;
	size_t nr_small = faults > nr_huge ? faults - nr_huge : 0;
	uint64_t small_ns = page_costs_limit_ns(costs, nr_small);

	if (small_ns == UINT64_MAX) {
		if (faults > pages / HUGE_RATIO)
			return;
		small_ns = 0;
	}
	cpu_ns = cpu_ns > small_ns ? cpu_ns - small_ns : 0;
	page_costs_note_huge(costs, cpu_ns, huge_pages,
			     cpu_ns >= page_costs_limit_ns(costs, huge_pages)
				     ? huge_pages
				     : 0);
}

bool page_costs_note_touches(struct page_costs *costs,
			     const struct touch_effort *then,
			     const struct touch_effort *now)
{
	size_t pages = now->pages - then->pages;
	size_t faults = now->faults - then->faults;
	uint64_t cpu_ns = now->cpu_ns - then->cpu_ns;

	if (now->cpu_ns < then->cpu_ns + EFFORT_NS)
		return false;
	if (faults >= pages / 100 * SMALL_PERCENT)
		page_costs_note_small(costs, cpu_ns, pages);
	else
		note_mixture(costs, cpu_ns, pages, faults);
	return true;
}
