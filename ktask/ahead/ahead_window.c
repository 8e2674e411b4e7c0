/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See ahead_window.h. */
#include "ahead/ahead_window.h"

/* A part of 16 of the mapping: 2 to 16 MiB of 4 KiB pages.  Of larger ones a part of 64, up
 * to 64 MiB: what is begun with them would else be made in many small windows. */
#define FIRST_PART 16
#define FIRST_LEAST AHEAD_BLOCK_PAGES
#define FIRST_MOST (8 * AHEAD_BLOCK_PAGES)
#define FIRST_PART_LARGE 64
#define FIRST_MOST_LARGE (32 * AHEAD_BLOCK_PAGES)
/* 64 MiB: 20 to 80 ms of one thread, after which the watcher polls again. */
#define WINDOW_MOST (32 * AHEAD_BLOCK_PAGES)

static size_t whole_blocks(size_t pages)
{
	return pages - pages % AHEAD_BLOCK_PAGES;
}

size_t ahead_first_pages(size_t nr_pages)
{
	size_t pages = whole_blocks(nr_pages / FIRST_PART);
	size_t large = whole_blocks(nr_pages / FIRST_PART_LARGE);

	pages = ahead_lesser(pages < FIRST_LEAST ? FIRST_LEAST : pages,
			     FIRST_MOST);
	large = ahead_lesser(large, FIRST_MOST_LARGE);
	return pages > large ? pages : large;
}

size_t ahead_allowed_pages(size_t first, size_t touched)
{
	return first + touched / 100 * AHEAD_WASTE_PERCENT;
}

static size_t allowed_pages(const struct ahead_budget *budget)
{
	return ahead_allowed_pages(budget->first, budget->touched);
}

size_t ahead_left_pages(const struct ahead_budget *budget)
{
	size_t allowed = allowed_pages(budget);

	return allowed > budget->pending ? allowed - budget->pending : 0;
}

size_t ahead_window_pages(const struct ahead_budget *budget, size_t last,
			  size_t own)
{
	size_t share = allowed_pages(budget);
	size_t pages = last ? 2 * last : AHEAD_BLOCK_PAGES;
	size_t capacity;

	/* Frontiers that came first leave something to the others. */
	if (budget->frontiers)
		share /= budget->frontiers;
	capacity = ahead_lesser(ahead_left_pages(budget),
				share > own ? share - own : 0);
	pages = ahead_lesser(pages, WINDOW_MOST);
	share = share > budget->left ? (share - budget->left) / 2 : 0;
	pages = ahead_lesser(pages, share);
	if (pages < AHEAD_BLOCK_PAGES)
		pages = AHEAD_BLOCK_PAGES;
	/* More will be allowed when the program has advanced.  A small window now would
	 * cost as much as a large one then. */
	if (capacity < pages)
		pages = own ? 0 : capacity;
	return whole_blocks(pages);
}
