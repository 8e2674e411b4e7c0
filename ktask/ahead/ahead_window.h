/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How far ahead of a program memory is made: the bound on waste, as arithmetic.
 * Knows no operating system, no clock and no page tables.
 *
 *	window   pages that one job makes ahead of one frontier
 *	block    512 pages: one page of page tables, or one huge page
 *	passed   a made page is passed when the program is known to have touched it
 *
 *	allowance  pages of a mapping that may be made in vain however little is touched; it
 *		 depends on the size of the mapping only
 *
 * The bound: at any moment, the pages of a mapping that were made and are not known to be
 * passed are at most the allowance plus 3 % of those that the program touched in order.
 * The first window is smaller, and later ones are at most half of that.  Pages
 * ahead of a frontier that the program has abandoned count for ever.  So a program that
 * keeps abandoning its frontiers soon gets no more windows.
 */
#ifndef AHEAD_AHEAD_WINDOW_H
#define AHEAD_AHEAD_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#define AHEAD_BLOCK_PAGES ((size_t)512)
#define AHEAD_WASTE_PERCENT 3

static inline size_t ahead_lesser(size_t a, size_t b)
{
	return a < b ? a : b;
}

struct ahead_budget {
	size_t first; /* the allowance */
	size_t touched; /* pages that the program touched, in order */
	size_t pending; /* pages that were made and are not passed, all frontiers */
	unsigned frontiers; /* that move, this one included */
	size_t left; /* pages of each window that are left to the program */
};

/* The allowance of a mapping: a part of it, within bounds. */
size_t ahead_first_pages(size_t nr_pages);

/* The bound on pages that were made and are not passed.  @first: of one mapping, or the sum
 * of several */
size_t ahead_allowed_pages(size_t first, size_t touched);

/* Pages that may still be made now. */
size_t ahead_left_pages(const struct ahead_budget *budget);

/**
 * ahead_window_pages - how large a frontier's next window may be
 * @last: pages of its last window, whose mark the program has reached; 0: none
 * @own: the part of @budget->pending that is ahead of this frontier
 *
 * At most half of the frontier's share, so that the next window fits in while the
 * program passes this one.
 *
 * Return: whole blocks; 0: none now.
 */
size_t ahead_window_pages(const struct ahead_budget *budget, size_t last,
			  size_t own);

#endif /* AHEAD_AHEAD_WINDOW_H */
