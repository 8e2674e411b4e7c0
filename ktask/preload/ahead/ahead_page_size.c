/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Page sizes: what a touch makes, and when huge pages are advised.
 *
 * Where the machine has huge pages on advice only, the watcher gives that advice for
 * a window before it is made, never for what is there, and not for the rest of the
 * mapping: a program that goes on at random would get 2 MiB for each touch.
 * Whatever the program says itself wins, before or later.
 *
 * Nor does it pay where a huge page takes longer to make than small ones: a host may
 * have taken back free memory, of which it takes whole blocks.  So the first windows
 * are of small pages, and no more advice is given in this process once huge ones took
 * as long.
 *
 * What is advised is a mapping of its own to the kernel until large_mappings.c joins
 * it with the rest, before mremap() and where the program discards a part.
 */
#include <string.h>
#include <sys/mman.h>

#include "preload/ahead/ahead.h"
#include "preload/shim.h"
#include "util/file.h"

#define MODE_FILE "/sys/kernel/mm/transparent_hugepage/enabled"
#define SIZE_FILE "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"

/* So much has to be touched in order, and the program had so long to say more. */
#define DENSE_PAGES (2 * AHEAD_BLOCK_PAGES)
#define ADVICE_NS 1000000
/* So many are made before they may be found slow: 16 MiB, of which some may be memory
 * that the host has taken back. */
#define HUGE_PAGES (8 * AHEAD_BLOCK_PAGES)

static enum { HUGE_NEVER, HUGE_ON_ADVICE, HUGE_ALWAYS } huge_mode;

/* What pages took to make, all windows together.  The watcher's. */
struct page_cost {
	uint64_t cpu_ns;
	size_t nr_pages;
};

static struct page_cost small_cost, huge_cost;
static bool huge_is_slow;

void ahead_note_cost(bool huge, uint64_t cpu_ns, size_t nr_pages)
{
	struct page_cost *cost = huge ? &huge_cost : &small_cost;

	/* Of a window that was left to the program nearly all is overhead. */
	if (nr_pages < AHEAD_BLOCK_PAGES / 4)
		return;
	cost->cpu_ns += cpu_ns;
	cost->nr_pages += nr_pages;
	if (huge_cost.nr_pages >= HUGE_PAGES && small_cost.nr_pages &&
	    huge_cost.cpu_ns / huge_cost.nr_pages >=
		    small_cost.cpu_ns / small_cost.nr_pages)
		huge_is_slow = true;
}

/* Elsewhere blocks would not be huge pages. */
static bool is_size_known(void)
{
	char text[32];

	return file_text(SIZE_FILE, text, sizeof(text)) > 0 &&
	       !strcmp(text, "2097152\n");
}

void ahead_page_size_init(void)
{
	char text[128];

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

	if (huge_mode == HUGE_ON_ADVICE)
		huge = advice == ADVICE_HUGE ||
		       (advice == ADVICE_NONE && !huge_is_slow &&
			atomic_load(&mapping->advised));
	return huge ? AHEAD_BLOCK_PAGES : 1;
}

bool ahead_wants_huge(const struct large_mapping *mapping, uint64_t now_ns)
{
	return huge_mode == HUGE_ON_ADVICE && !shim_ahead_small &&
	       small_cost.nr_pages && !huge_is_slow &&
	       atomic_load(&mapping->advice) == ADVICE_NONE &&
	       mapping->tracker.touched >= DENSE_PAGES &&
	       now_ns - mapping->since_ns >= ADVICE_NS;
}

bool ahead_advise_huge(struct large_mapping *mapping,
		       const struct touch_window *window)
{
	size_t nr_pages = mapping->tracker.nr_pages;
	size_t first = window->down ? nr_pages - window->end : window->lead;
	bool done = false;

	if (!large_mapping_enter(mapping))
		return false;
	if (atomic_load(&mapping->advice) == ADVICE_NONE) {
		atomic_store(&mapping->advised, true);
		done = !real_madvise(
			(void *)(mapping->start + first * AHEAD_PAGE_BYTES),
			(window->end - window->lead) * AHEAD_PAGE_BYTES,
			MADV_HUGEPAGE);
	}
	large_mapping_leave(mapping);
	return done;
}
