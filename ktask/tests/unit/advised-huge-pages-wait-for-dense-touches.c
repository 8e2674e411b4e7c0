/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Huge pages that are advised ahead of a program: one that has filled memory in order,
 * and then stores to one page in each 2 MiB, or to the first pages, or to every 64th, has
 * no more than the bound allows besides the pages that it stores to.  Without the advice
 * each of its stores would make 4 KiB.  One that goes on to fill memory gets huge pages.
 */
#include <string.h>

#include "ktest.h"

#include "ahead/window_blocks.h"

#define NR_PAGES (128 * AHEAD_BLOCK_PAGES)
/* Where the bound is less than a window and the block before it. */
#define FEW_PAGES (24 * AHEAD_BLOCK_PAGES)
/* Touched before huge pages are advised, as in preload/ahead/ahead_page_size.c. */
#define SMALL_PAGES (2 * AHEAD_BLOCK_PAGES)

static unsigned char present[NR_PAGES], advised[NR_PAGES];
static size_t nr_pages, nr_present, nr_stored, nr_faults;

static int read_present(void *arg, size_t first, size_t nr, unsigned char *to)
{
	memcpy(to, present + first, nr);
	return 0;
}

static void make_pages(size_t first, size_t end)
{
	for (size_t page = first; page < end; page++) {
		nr_present += !present[page];
		present[page] = 1;
	}
}

/* A block in which nothing is present becomes a huge page, if that was advised. */
static void fault_page(size_t page)
{
	size_t block = page - page % AHEAD_BLOCK_PAGES;
	bool huge = true;

	for (size_t i = block; i < block + AHEAD_BLOCK_PAGES; i++)
		huge = huge && advised[i] && !present[i];
	make_pages(huge ? block : page,
		   huge ? block + AHEAD_BLOCK_PAGES : page + 1);
}

static void advise_window(const struct touch_tracker *tracker,
			  const struct touch_window *window)
{
	size_t filled = window->filled;

	for (size_t at = window->start; at < window->end; at++)
		if (at < window->mark || at >= window->mark + AHEAD_BLOCK_PAGES)
			advised[touch_page(nr_pages, window->down, at)] = 1;
	for (size_t i = 0; filled != AHEAD_NOWHERE && i < AHEAD_BLOCK_PAGES;
	     i++)
		assert_true(present[touch_page(nr_pages, window->down,
					       filled + i)]);
}

static bool was_preempted(void *window, uint64_t idle_since_ns)
{
	return false;
}

static int make_piece(void *arg, const struct window_block *block, size_t from,
		      size_t to)
{
	const struct touch_window *window = arg;

	for (size_t at = from; at < to; at++)
		fault_page(touch_page(nr_pages, window->down, at));
	return 0;
}

static void make_window(struct touch_window *window)
{
	const struct window_maker maker = {
		.window = window,
		.is_huge = true,
		.mapping = window,
		.was_preempted = was_preempted,
		.make_piece = make_piece,
	};
	size_t nr_blocks;
	unsigned nr;

	window->hole_is_made = window->hole_fits;
	nr_blocks = window_count_blocks(window);
	assert_int_equal(window_make_blocks(
				 &maker, WINDOW_BLOCK_UNITS,
				 (nr_blocks + 1) * WINDOW_BLOCK_UNITS, 0, &nr),
			 0);
	assert_int_equal(nr, nr_blocks);
}

/* A helper makes all of a window at once, or the program makes it. */
static void watch_touches(struct touch_tracker *tracker, bool helped)
{
	struct touch_window window;

	assert_true(touch_tracker_follow(tracker) >= 0);
	assert_true(touch_tracker_probe(tracker) >= 0);
	assert_true(touch_tracker_scan(tracker) >= 0);
	if (tracker->touched < SMALL_PAGES)
		return;
	tracker->unit = AHEAD_BLOCK_PAGES;
	tracker->advised = true;
	tracker->alone = !helped;
	if (!touch_tracker_window(tracker, &window))
		return;
	advise_window(tracker, &window);
	if (helped)
		make_window(&window);
}

static void store_page(struct touch_tracker *tracker, bool down, bool helped,
		       size_t at)
{
	size_t bound;

	nr_faults += !present[touch_page(nr_pages, down, at)];
	fault_page(touch_page(nr_pages, down, at));
	nr_stored++;
	if (at % 64 == 0)
		watch_touches(tracker, helped);
	bound = tracker->first + nr_stored * AHEAD_WASTE_PERCENT / 100;
	if (nr_present > nr_stored + bound)
		fail_msg("%zu pages present, %zu stored to, bound %zu",
			 nr_present, nr_stored, bound);
}

/* How a program goes on: it stores to @run pages, of @step each. */
struct way {
	size_t run, step;
};

static const struct way ways[] = { { 1, 512 }, { 16, 512 }, { 1, 64 } };

static void play_way(const struct way *way, bool down, bool helped)
{
	struct touch_tracker tracker;

	memset(present, 0, sizeof(present));
	memset(advised, 0, sizeof(advised));
	nr_present = nr_stored = nr_faults = 0;
	touch_tracker_init(&tracker, nr_pages, 0, read_present, NULL);
	for (size_t at = 0; at < nr_pages / 4; at++)
		store_page(&tracker, down, helped, at);
	for (size_t at = nr_pages / 4; at < nr_pages; at += way->step)
		for (size_t i = 0; i < way->run; i++)
			store_page(&tracker, down, helped, at + i);
}

static void stores_here_and_there_get_no_huge_pages(void **unused)
{
	for (size_t i = 0; i < 4 * KTEST_ARRAY_SIZE(ways); i++) {
		nr_pages = i % 2 ? FEW_PAGES : NR_PAGES;
		play_way(&ways[i / 4], i / 2 % 2, true);
		play_way(&ways[i / 4], i / 2 % 2, false);
	}
}

static size_t count_advised(void)
{
	size_t nr = 0;

	for (size_t page = 0; page < NR_PAGES; page++)
		nr += advised[page];
	return nr;
}

static void dense_stores_get_them(void **unused)
{
	const struct way dense = { 1, 1 };

	nr_pages = NR_PAGES;
	for (int down = 0; down < 2; down++) {
		play_way(&dense, down, true);
		assert_true(count_advised() > NR_PAGES * 2 / 3);
		play_way(&dense, down, false);
		assert_true(count_advised() > NR_PAGES * 2 / 3);
	}
}

/* Where helpers are quick enough, they make the small pages by which the program shows that
 * it fills memory as well. */
static void dense_stores_seldom_fault(void **unused)
{
	const struct way dense = { 1, 1 };

	nr_pages = NR_PAGES;
	for (int down = 0; down < 2; down++) {
		play_way(&dense, down, true);
		assert_true(nr_faults - SMALL_PAGES < NR_PAGES / 32);
	}
}

KTEST_MAIN(KTEST(stores_here_and_there_get_no_huge_pages),
	   KTEST(dense_stores_get_them), KTEST(dense_stores_seldom_fault))
