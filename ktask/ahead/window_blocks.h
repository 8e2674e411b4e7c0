/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A window as a job of the library: its blocks, and the pieces of a block.
 *
 * Program and helper must not make neighbouring pages: two threads that fault side by
 * side are slower than one.  So helpers begin at the far end of the window and work
 * towards the program.  They meet once, and until then both make pages.  The first page
 * of each block is left to the program, and shows how far it has come.  Blocks of
 * huge pages have no such page.
 *
 * Pieces are short, because the lock of the address space is held for each.
 */
#ifndef AHEAD_WINDOW_BLOCKS_H
#define AHEAD_WINDOW_BLOCKS_H

#include "ahead/touch_frontier.h"

/*
 * Two units for each block, of which the second does nothing: a job of one unit could
 * not be divided, and would get no helper.
 */
#define WINDOW_BLOCK_UNITS 2
#define WINDOW_PIECE_PAGES ((size_t)64)

/* In the direction of the window. */
struct window_block {
	size_t start, end;
	bool marked; /* the program is to touch its first pages */
};

static inline size_t window_count_blocks(const struct touch_window *window)
{
	return (window->end - window->start + AHEAD_BLOCK_PAGES - 1) /
	       AHEAD_BLOCK_PAGES;
}

/* Position @at of the job: the last block of the window comes first. */
static inline struct window_block
window_get_block(const struct touch_window *window, size_t at)
{
	size_t number = window_count_blocks(window) - at / WINDOW_BLOCK_UNITS;
	struct window_block block = {
		.start = window->start + number * AHEAD_BLOCK_PAGES,
	};

	block.end = block.start + AHEAD_BLOCK_PAGES;
	if (block.end > window->end)
		block.end = window->end;
	block.marked = block.start == window->mark;
	return block;
}

/* The first page of a block of small pages that is not left to the program. */
static inline size_t window_first_page(const struct window_block *block)
{
	return block->start + (block->marked ? AHEAD_STRIP_PAGES : 1);
}

/* Where the piece begins that ends at @end. */
static inline size_t window_piece_start(size_t first, size_t end)
{
	return end - first < WINDOW_PIECE_PAGES ? first
						: end - WINDOW_PIECE_PAGES;
}

#endif /* AHEAD_WINDOW_BLOCKS_H */
