/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Page sizes: what a touch makes, and when huge pages are advised.
 *
 * If the machine makes huge pages on advice only, the watcher advises them for a window
 * just before it is made.  It never advises them for present pages, nor for the rest of
 * the mapping: a program that continued at random would get 2 MiB for each touch.  For
 * the same reason it does not advise the hole of the window, by which the program shows
 * that it fills memory.  The hole is advised together with the next window, once it is
 * full.  Then all of it is one mapping to the kernel, which allows a process 65,530.
 * The program's own advice has precedence, whether it comes earlier or later; where the shim
 * does not see it, it shows in what is made (make_ahead.c).
 *
 * Huge pages do not pay if most of them take longer to make than 512 small ones
 * (ahead/page_cost.h).  To compare the two, the first windows have small pages.
 *
 * If no helper gets a CPU the program makes the huge pages itself.  Then the program's CPU
 * time for huge pages is compared with its CPU time for small ones, both including its own
 * work.
 *
 * To the kernel the advised range is a mapping of its own.  large_mappings.c joins it
 * with the rest before mremap(), and where the program discards a part.
 *
 * Locking: large_mappings.h.
 */
#include <string.h>
#include <sys/mman.h>

#include "preload/ahead/ahead.h"
#include "preload/shim.h"
#include "user/limits/config.h"
#include "util/file.h"

#define MODE_FILE "/sys/kernel/mm/transparent_hugepage/enabled"
#define SHARED_FILE "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
#define SIZE_FILE "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"

/* Advise only after this much was touched in order, and the program had this long to
 * give advice of its own. */
#define DENSE_PAGES (2 * AHEAD_BLOCK_PAGES)
#define ADVICE_NS 1000000
static enum { HUGE_NEVER, HUGE_ON_ADVICE, HUGE_ALWAYS } huge_mode;
/* A kernel without such a file makes no huge pages of shared memory. */
static bool is_shared_huge;

/* Pages made by helpers, and pages made by the program, whose cost includes its own work.
 * Only the watcher uses these. */
static struct page_costs helpers_costs, programs_costs;

static bool is_huge_slow(void)
{
	return page_costs_huge_is_slow(&helpers_costs) ||
	       page_costs_huge_is_slow(&programs_costs);
}

uint64_t ahead_slow_block_ns(void)
{
	return page_costs_limit_ns(&helpers_costs, AHEAD_BLOCK_PAGES);
}

void ahead_note_cost(const struct large_mapping *mapping, size_t nr_pages)
{
	uint64_t cpu_ns = mapping->result.cpu_ns;

	if (mapping->huge)
		page_costs_note_huge(&helpers_costs, cpu_ns, nr_pages,
				     mapping->nr_slow_blocks *
					     AHEAD_BLOCK_PAGES);
	else
		page_costs_note_small(&helpers_costs, cpu_ns, nr_pages);
}

bool ahead_note_touches(const struct touch_effort *then,
			const struct touch_effort *now)
{
	return page_costs_note_touches(&programs_costs, then, now);
}

/* Elsewhere blocks would not be huge pages. */
static bool is_size_known(void)
{
	char text[32];

	return file_text(SIZE_FILE, text, sizeof(text)) > 0 &&
	       !strcmp(text, "2097152\n");
}

bool ahead_shares_small(void)
{
	return !is_shared_huge;
}

void ahead_page_size_init(void)
{
	char text[128];

	is_shared_huge = file_text(SHARED_FILE, text, sizeof(text)) > 0 &&
			 !strstr(text, "[never]") && !strstr(text, "[deny]");
	huge_mode = HUGE_NEVER;
	if (!is_size_known() || file_text(MODE_FILE, text, sizeof(text)) <= 0)
		return;
	if (strstr(text, "[always]"))
		huge_mode = HUGE_ALWAYS;
	else if (strstr(text, "[madvise]"))
		huge_mode = HUGE_ON_ADVICE;
}

size_t ahead_unit_pages(const struct large_mapping *mapping)
{
	int advice = atomic_load(&mapping->advice);
	bool huge = huge_mode == HUGE_ALWAYS && advice != ADVICE_SMALL;

	if (mapping->waste)
		return 1;
	if (huge_mode == HUGE_ON_ADVICE)
		huge = advice == ADVICE_HUGE ||
		       (advice == ADVICE_NONE && !is_huge_slow() &&
			atomic_load(&mapping->advised));
	return huge ? AHEAD_BLOCK_PAGES : 1;
}

bool ahead_may_be_huge_unseen(const struct large_mapping *mapping)
{
	return huge_mode == HUGE_ON_ADVICE && !mapping->waste &&
	       atomic_load(&mapping->advice) == ADVICE_NONE;
}

bool ahead_wants_huge(const struct large_mapping *mapping, uint64_t now_ns)
{
	return huge_mode == HUGE_ON_ADVICE && !shim_ahead_small &&
	       !mapping->waste && config_get()->ahead == CONFIG_AHEAD_ON &&
	       (helpers_costs.small.nr_pages ||
		programs_costs.small.nr_pages) &&
	       !is_huge_slow() &&
	       atomic_load(&mapping->advice) == ADVICE_NONE &&
	       mapping->tracker.touched >= DENSE_PAGES &&
	       now_ns - mapping->since_ns >= ADVICE_NS;
}

/* [@from, @to) in the direction of the window. */
static bool advise_range(const struct large_mapping *mapping, bool down,
			 size_t from, size_t to)
{
	size_t nr_pages = mapping->tracker.nr_pages;
	size_t first = down ? nr_pages - to : from;

	return !real_madvise(
		(void *)(mapping->start + first * AHEAD_PAGE_BYTES),
		(to - from) * AHEAD_PAGE_BYTES, MADV_HUGEPAGE);
}

bool ahead_advise_huge(struct large_mapping *mapping,
		       const struct touch_window *window)
{
	bool done = false;

	if (!large_mapping_enter(mapping))
		return false;
	if (atomic_load(&mapping->advice) == ADVICE_NONE) {
		large_mapping_note_advice(mapping);
		done = advise_range(mapping, window->down, window->start,
				    window->mark);
		if (done && window->mark + AHEAD_BLOCK_PAGES < window->end)
			advise_range(mapping, window->down,
				     window->mark + AHEAD_BLOCK_PAGES,
				     window->end);
		if (done && window->filled != AHEAD_NOWHERE)
			advise_range(mapping, window->down, window->filled,
				     window->filled + AHEAD_BLOCK_PAGES);
	}
	large_mapping_leave(mapping);
	return done;
}
