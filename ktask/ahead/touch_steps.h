/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Finds a program that touches a mapping in steps, for example along a column of a matrix:
 * one page, then another at a fixed distance, upwards or downwards.  It follows one such
 * walk of a mapping, and only if nothing is touched in order.
 *
 * A walk is recognised by its first pages: WALK_PAGES present ones at the same distance,
 * and none between them.  A window ahead of it has only the pages that it will touch.  A
 * strip of these is left absent as the mark.  Once the program has touched all of the
 * strip, the next window has twice as many pages.  Pages that were made and are not passed
 * are bounded as in touch_frontier.h: by an allowance plus 3 % of what the program
 * touched.
 *
 * Positions count pages in the direction of the walk, as in touch_frontier.h.
 *
 * Behaves badly: a program that touches several pages at each step seems to touch at
 * random.
 *
 * Not thread-safe: only the watcher uses it.
 */
#ifndef AHEAD_TOUCH_STEPS_H
#define AHEAD_TOUCH_STEPS_H

#include "ahead/touch_frontier.h"

/* The longest distance between two touched pages. */
#define STEP_MOST ((size_t)128)

struct touch_steps {
	ahead_present_func read_present;
	void *arg;
	size_t nr_pages;
	size_t phase; /* of the first page in its block */
	size_t first; /* see struct ahead_budget */
	size_t step; /* 0: none was found */
	size_t at; /* the next page that the program is to touch */
	size_t made; /* the first page behind the windows, or at */
	size_t mark; /* the first page of the strip; AHEAD_NOWHERE: none */
	size_t window; /* pages made for the last one */
	size_t touched; /* pages */
	size_t found_at; /* where it was found */
	bool down, moves;
};

/* touch_steps_init - as touch_tracker_init() */
void touch_steps_init(struct touch_steps *steps, size_t nr_pages, size_t phase,
		      ahead_present_func read_present, void *arg);

/**
 * touch_steps_find - search all of the mapping for a walk, unless a known one moves
 *
 * Return: whether a new walk was found, or a negative error.
 */
int touch_steps_find(struct touch_steps *steps);

/**
 * touch_steps_follow - see how far the walk has advanced
 *
 * Return: whether it has moved, or a negative error of read_present().
 */
int touch_steps_follow(struct touch_steps *steps);

/* Has the walk reached the mark of its last window, or had none? */
bool touch_steps_wants(const struct touch_steps *steps);

/**
 * touch_steps_window - the next window, if one may be made
 *
 * Make the page at @window->start and every @window->step behind it, but not those of the
 * strip.
 */
bool touch_steps_window(struct touch_steps *steps, struct touch_window *window);

/* Pages that were made and are not known to be passed. */
size_t touch_steps_pending(const struct touch_steps *steps);

/* The program has come through all of a window. */
static inline bool touch_steps_passed(const struct touch_steps *steps,
				      const struct touch_window *window)
{
	return steps->at >= window->end;
}

/* Is the page at @at one that is to be made? */
static inline bool touch_window_has(const struct touch_window *window,
				    size_t at)
{
	size_t strip_end = window->strip + AHEAD_STRIP_PAGES * window->step;

	return at >= window->start && !((at - window->start) % window->step) &&
	       !(at >= window->strip && at < strip_end);
}

#endif /* AHEAD_TOUCH_STEPS_H */
