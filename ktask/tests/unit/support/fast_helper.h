/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A helper for tests of touch_frontier.c, as ahead/window_blocks.h works: it leaves the
 * mark of a window and the first page of each block to the program.
 */
#ifndef UNIT_FAST_HELPER_H
#define UNIT_FAST_HELPER_H

#include <stdbool.h>

#include "ahead/touch_frontier.h"

/* Is the page at position @at of the window left to the program?  @unit: pages of a touch */
static inline bool helper_leaves_page(const struct touch_window *window,
				      size_t unit, size_t at)
{
	size_t in_block = (at - window->start) % AHEAD_BLOCK_PAGES;

	if (at - in_block == window->mark)
		return unit > 1 || in_block < AHEAD_STRIP_PAGES;
	return unit == 1 && !in_block;
}

/* Make the pages of a window at once.  Return: how many were absent. */
static inline size_t helper_make_window(const struct touch_window *window,
					size_t unit, unsigned char *present,
					size_t nr_pages)
{
	size_t nr_made = 0;

	for (size_t at = window->start; at < window->end; at++) {
		size_t page = touch_page(nr_pages, window->down, at);

		if (helper_leaves_page(window, unit, at))
			continue;
		nr_made += !present[page];
		present[page] = 1;
	}
	return nr_made;
}

#endif /* UNIT_FAST_HELPER_H */
