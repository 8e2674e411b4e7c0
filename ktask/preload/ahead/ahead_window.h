/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How far ahead of a program memory is made: the bound on waste, as arithmetic.
 * Knows no operating system, no clock and no page tables.
 *
 *	window   pages that are made ahead of one frontier by one job
 *	block    512 pages: one page of page tables, or one huge page
 *	passed   of a page that was made: the program is known to have come by
 *
 * The bound: at any moment the pages of a mapping that were made and are not known
 * to be passed are at most first + 3 % of those that the program touched in order.
 * What is behind a frontier at which nobody arrives counts for ever, so that a
 * program which moves about soon gets nothing.
 */
#ifndef PRELOAD_AHEAD_WINDOW_H
#define PRELOAD_AHEAD_WINDOW_H

#include <stddef.h>

#define AHEAD_BLOCK_PAGES ((size_t)512)
#define AHEAD_WASTE_PERCENT 3

struct ahead_budget {
	size_t first; /* pages that may be made before anything is known */
	size_t touched; /* pages that the program touched, in order */
	size_t pending; /* pages that were made and are not passed, all frontiers */
	unsigned frontiers; /* that move, this one included */
};

/* Pages of the first window of a mapping: a part of it, within bounds. */
size_t ahead_first_pages(size_t nr_pages);

/* Pages that may still be made now. */
size_t ahead_left_pages(const struct ahead_budget *budget);

/**
 * ahead_window_pages - how large a frontier's next window may be
 * @last: its last window, at the mark of which the program has arrived; 0: none
 * @own: of @budget->pending, ahead of this frontier
 *
 * At most half of its share, so that there is room for the next window while the
 * program passes this one.
 *
 * Return: whole blocks; 0: none now.
 */
size_t ahead_window_pages(const struct ahead_budget *budget, size_t last,
			  size_t own);

#endif /* PRELOAD_AHEAD_WINDOW_H */
