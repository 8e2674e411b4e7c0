/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Finds where a program touches a mapping in order: its frontiers, one for each
 * thread that does, upwards or downwards.
 *
 * Sees the mapping only through a function that tells which pages are present.  Knows
 * no operating system: tests play a program's touches to it.
 *
 * A run of present pages has two edges.  An edge that moves on and leaves no hole is a
 * frontier.  Ahead of it a window is made, and a strip of pages in or behind the window
 * is left absent as the mark.  The program has reached the mark when it has touched all
 * of the strip, and all that was left to it on the way: the first page of each block,
 * or a block in a window of huge pages, its hole.  So a program that touches every
 * second page, or jumps into a window, never reaches the mark.
 *
 * A program that continues behind the window, and left out few of these pages, has also
 * passed the window.  The same fraction of the window then counts as wasted.
 *
 * Once the mark is reached, the next window is twice as large.  It is as small as the
 * first if nothing moved for long, or if the program touched much elsewhere before.
 * Random touches make no runs.
 *
 * Positions of a frontier count in its direction; those of a downward one count from the
 * end of the mapping.  So the code knows one direction only.
 *
 * Not thread-safe: only the watcher uses it.
 */
#ifndef AHEAD_TOUCH_FRONTIER_H
#define AHEAD_TOUCH_FRONTIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ahead/ahead_window.h"

/* Pages left absent as the mark; all must be touched. */
#define AHEAD_STRIP_PAGES ((size_t)8)
#define AHEAD_FRONTIERS 32
#define AHEAD_NOWHERE SIZE_MAX

/* The most pages that are asked for by one call of an ahead_present_func. */
#define AHEAD_READ_PAGES ((size_t)4096)

/*
 * Fill in for each of @nr pages from @first on whether it is present (bit 0).
 * Return: 0, or an error: the mapping is not what it was.
 */
typedef int (*ahead_present_func)(void *arg, size_t first, size_t nr,
				  unsigned char *present);

struct touch_frontier {
	size_t origin; /* where its run began */
	size_t whole; /* from here on no page is known to be left out */
	size_t at; /* the program touched what is before */
	size_t made; /* end of its windows, or at */
	size_t lead; /* before the last window: pages left to the program */
	size_t start; /* of the last window */
	size_t mark; /* the strip that is watched; AHEAD_NOWHERE: none */
	size_t hole; /* the block of small pages in the last window, if that is huge */
	size_t window; /* pages of the last window; 0: the next is as the first */
	size_t elsewhere; /* touched by other frontiers when that was made */
	bool down;
	bool moves; /* it was seen to move on */
	bool huge; /* the last window is of huge pages, without a page left in each */
};

struct touch_tracker {
	ahead_present_func read_present;
	void *arg;
	size_t nr_pages;
	size_t phase; /* of the first page in its block */
	size_t unit; /* pages that one touch makes */
	size_t first; /* see struct ahead_budget */
	size_t touched;
	size_t skipped; /* pages of windows that the program seems to have left out */
	size_t present; /* pages in runs too short for a frontier, last scan */
	/* Of memory that is shared: pages that other processes made, as pending ones here;
	 * and who is told, with arg, that the program has touched all of [first, end). */
	size_t others;
	void (*passed)(void *arg, size_t first, size_t end);
	/* advised: the kernel makes huge pages on advice only, so holes have small pages;
	 * otherwise one touch fills a hole.  alone: the program makes the huge pages. */
	bool advised, alone;
	/* If a window is one block, the mark is its first pages, so that the next window can
	 * follow at once.  Otherwise the mark is behind the block, and the next window
	 * begins a block later. */
	bool first_marks;
	unsigned turn; /* the frontier that may have the next window first */
	unsigned nr;
	struct touch_frontier frontiers[AHEAD_FRONTIERS];
};

/* A window, in its frontier's direction. */
struct touch_window {
	size_t start, end;
	/* Pages between the edge of 2 MiB before it and its start; 0: it begins at one. */
	size_t before;
	size_t mark; /* AHEAD_NOWHERE: none is within */
	/* The hole of the last window, which is full by now; AHEAD_NOWHERE: it had none. */
	size_t filled;
	/* Does the bound allow helpers to make the hole?  The caller sets hole_is_made if
	 * they shall make most of it. */
	bool hole_fits, hole_is_made;
	bool down;
	/* For a walk in steps (touch_steps.h): the distance of pages to be made, and where
	 * the pages that are left absent begin.  step 0: make all pages. */
	size_t step, strip;
};

/**
 * touch_tracker_init
 * @phase: number of the mapping's first page in its block of 512
 */
void touch_tracker_init(struct touch_tracker *tracker, size_t nr_pages,
			size_t phase, ahead_present_func read_present,
			void *arg);

/**
 * touch_tracker_follow - see how far the frontiers have moved
 *
 * Return: whether any has, or a negative error of read_present().
 */
int touch_tracker_follow(struct touch_tracker *tracker);

/**
 * touch_tracker_probe - look for new frontiers where most programs begin: at both ends
 *
 * Return: whether there are, or a negative error.
 */
int touch_tracker_probe(struct touch_tracker *tracker);

/**
 * touch_tracker_scan - look for new frontiers in all of the mapping
 *
 * Return: whether there are, or a negative error.
 */
int touch_tracker_scan(struct touch_tracker *tracker);

/* Has a moving frontier reached the mark of its last window, or had none? */
bool touch_tracker_wants(const struct touch_tracker *tracker);

/**
 * touch_tracker_window - the next window, if one may be made
 *
 * It counts as made, all of it, from then on.
 */
bool touch_tracker_window(struct touch_tracker *tracker,
			  struct touch_window *window);

/* Nothing has moved for long: the next windows are as small as the first. */
void touch_tracker_rest(struct touch_tracker *tracker);

/* Has the program passed all of a window? */
bool touch_tracker_passed(const struct touch_tracker *tracker,
			  const struct touch_window *window);

/* Pages in windows that the program is not known to have passed: wasted, if it
 * never comes. */
size_t touch_tracker_pending(const struct touch_tracker *tracker);
/* Of these, what is present: of a window marks, holes and what helpers did not come to are
 * not.  Or a negative error. */
long touch_tracker_present(struct touch_tracker *tracker);

/* Frontiers that were seen to move. */
unsigned touch_tracker_moving(const struct touch_tracker *tracker);
/* Pages that the program may still touch; none before a frontier was seen to move:
 * memory that is mapped need never be touched. */
size_t touch_tracker_untouched(const struct touch_tracker *tracker);
/* Are all pages touched?  Then there is nothing left to watch. */
bool touch_tracker_done(const struct touch_tracker *tracker);

/* How many of the pages that an ahead_present_func has read are absent? */
static inline size_t touch_count_absent(const unsigned char *present, size_t nr)
{
	size_t absent = 0;

	for (size_t i = 0; i < nr; i++)
		absent += !(present[i] & 1);
	return absent;
}

/* The number of the page at position @at. */
static inline size_t touch_page(size_t nr_pages, bool down, size_t at)
{
	return down ? nr_pages - 1 - at : at;
}

static inline size_t touch_phase(size_t nr_pages, size_t phase, bool down)
{
	if (!down)
		return phase;
	return (AHEAD_BLOCK_PAGES - (phase + nr_pages) % AHEAD_BLOCK_PAGES) %
	       AHEAD_BLOCK_PAGES;
}

#endif /* AHEAD_TOUCH_FRONTIER_H */
