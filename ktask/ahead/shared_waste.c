/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See shared_waste.h. */
#include "ahead/ahead_window.h"
#include "ahead/shared_waste.h"

/* Return: how many of @nr pages were added: no block has more than all of its pages. */
static size_t add_to_block(_Atomic uint16_t *block, size_t nr)
{
	uint16_t before = atomic_load(block), after;

	do
		after = (uint16_t)ahead_lesser(before + nr, AHEAD_BLOCK_PAGES);
	while (!atomic_compare_exchange_weak(block, &before, after));
	return (size_t)(after - before);
}

/* First as many as there may be, so that two processes cannot both have the last ones. */
bool shared_waste_add(struct shared_waste *waste, size_t first, size_t end,
		      size_t most)
{
	size_t before = atomic_load(&waste->nr_pages), nr = end - first;

	if (end > waste->nr_blocks * AHEAD_BLOCK_PAGES)
		return false;
	do
		if (nr > most || before > most - nr)
			return false;
	while (!atomic_compare_exchange_weak(&waste->nr_pages, &before,
					     before + nr));
	while (first < end) {
		size_t block = first / AHEAD_BLOCK_PAGES;
		size_t next =
			ahead_lesser((block + 1) * AHEAD_BLOCK_PAGES, end);

		nr -= add_to_block(&waste->blocks[block], next - first);
		first = next;
	}
	atomic_fetch_sub(&waste->nr_pages, nr);
	return true;
}

void shared_waste_pass(struct shared_waste *waste, size_t first, size_t end)
{
	size_t block = (first + AHEAD_BLOCK_PAGES - 1) / AHEAD_BLOCK_PAGES;
	size_t last = ahead_lesser(end / AHEAD_BLOCK_PAGES, waste->nr_blocks);

	for (; block < last; block++)
		if (atomic_load(&waste->blocks[block]))
			atomic_fetch_sub(
				&waste->nr_pages,
				atomic_exchange(&waste->blocks[block], 0));
}

void shared_waste_begin(struct shared_waste *waste)
{
	atomic_fetch_add(&waste->nr_young, 1);
}

void shared_waste_last(struct shared_waste *waste)
{
	unsigned nr = atomic_load(&waste->nr_young);

	/* This one, and one that did not last. */
	while (!atomic_compare_exchange_weak(&waste->nr_young, &nr,
					     nr > 2 ? nr - 2 : 0))
		;
}

void shared_waste_help(struct shared_waste *waste)
{
	atomic_store(&waste->nr_young, 0);
}
