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
 * A window of huge pages has a hole, a block that shows whether the program fills memory
 * or stores here and there.  If huge pages come on advice, the hole has small pages, and
 * helpers make most of them.  They leave the mark and the first page of each piece.
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
	size_t edge; /* of its 2 MiB; wraps if that is before the mapping */
	size_t start, end; /* what the window has of it */
	bool marked; /* the program is to touch its first pages */
};

static inline size_t window_count_blocks(const struct touch_window *window)
{
	return (window->before + window->end - window->start +
		AHEAD_BLOCK_PAGES - 1) /
	       AHEAD_BLOCK_PAGES;
}

/* Position @at of the job: the last block of the window comes first. */
static inline struct window_block
window_get_block(const struct touch_window *window, size_t at)
{
	size_t number = window_count_blocks(window) - at / WINDOW_BLOCK_UNITS;
	size_t edge =
		window->start - window->before + number * AHEAD_BLOCK_PAGES;
	struct window_block block = {
		.edge = edge,
		.start = number ? edge : window->start,
		.end = edge + AHEAD_BLOCK_PAGES,
	};

	if (block.end > window->end)
		block.end = window->end;
	block.marked = block.start == window->mark;
	return block;
}

/* Is all of its 2 MiB part of a mapping of so many pages? */
static inline bool window_block_is_within(const struct window_block *block,
					  size_t nr_pages)
{
	return block->edge < nr_pages &&
	       nr_pages - block->edge >= AHEAD_BLOCK_PAGES;
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

/* How the pieces of a window are made.  Each function is called with @mapping. */
struct window_maker {
	const struct touch_window *window;
	bool is_huge; /* but for the hole */
	void *mapping;
	/* Do others want the CPU?  Then the rest is left to the program. */
	bool (*was_preempted)(void *mapping, uint64_t idle_since_ns);
	/* Make [@from, @to) of @block, all of it if it is a huge page.  Return: 1 if the
	 * program has reached @from already, 0 or -errno. */
	int (*make_piece)(void *mapping, const struct window_block *block,
			  size_t from, size_t to);
};

static inline int window_make_block(const struct window_maker *maker,
				    const struct window_block *block,
				    uint64_t idle_ns)
{
	bool hole = maker->is_huge && block->marked;
	bool huge = maker->is_huge && !hole;
	size_t first = huge ? block->start : window_first_page(block);
	size_t end = hole && !maker->window->hole_is_made ? first : block->end;
	int error = 0;

	while (end > first && !error &&
	       !maker->was_preempted(maker->mapping, idle_ns)) {
		size_t at = huge ? first : window_piece_start(first, end);

		/* Of the hole the first page of each piece is left. */
		if (at + hole < end)
			error = maker->make_piece(maker->mapping, block,
						  at + hole, end);
		end = at;
	}
	return error < 0 ? error : 0;
}

/*
 * window_make_blocks - make the blocks at positions [@start, @end) of the job, by a helper
 * @idle_ns: the helper's ahead_idle_clock_ns() before that
 * @nr: set to how many blocks were begun
 *
 * Return: 0, or the -errno that ended it.
 */
static inline int window_make_blocks(const struct window_maker *maker,
				     size_t start, size_t end, uint64_t idle_ns,
				     unsigned *nr)
{
	int error = 0;

	*nr = 0;
	for (size_t at = start; at < end && !error; at++) {
		struct window_block block = window_get_block(maker->window, at);

		if (at % WINDOW_BLOCK_UNITS)
			continue;
		error = window_make_block(maker, &block, idle_ns);
		(*nr)++;
	}
	return error;
}

#endif /* AHEAD_WINDOW_BLOCKS_H */
