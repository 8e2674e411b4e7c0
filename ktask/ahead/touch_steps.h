/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Finds a program that touches a mapping in steps: one page of every so many, upwards or
 * downwards, as who walks down a column of a matrix.  One such walk of a mapping is
 * followed, where nothing is touched in order.
 *
 * A walk is known by its first pages: so many present ones at the same distance, and none
 * between them.  Ahead of it a window is made of the pages that it will touch, and of no
 * other.  A strip of these is left absent as the mark.  Once the program has touched all
 * of the strip the next window has twice as many pages.  Pages that were made and are not
 * passed are bounded as in touch_frontier.h: by a first window and 3 % of what the program
 * touched.
 *
 * Positions count pages in the direction of the walk, as in touch_frontier.h.
 *
 * Behaves badly: who takes several pages in each step is taken for touching at random.
 *
 * Not thread-safe: only the watcher uses it.
 */
#ifndef AHEAD_TOUCH_STEPS_H
#define AHEAD_TOUCH_STEPS_H

#include "ahead/touch_frontier.h"

/* Pages from one that is touched to the next, at most. */
#define STEP_MOST ((size_t)128)

struct touch_steps {
	ahead_present_func read_present;
	void *arg;
	size_t nr_pages;
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

void touch_steps_init(struct touch_steps *steps, size_t nr_pages,
		      ahead_present_func read_present, void *arg);

/**
 * touch_steps_find - look for one in all of the mapping, unless one is known that moves
 *
 * Return: whether there is one that was not known, or a negative error.
 */
int touch_steps_find(struct touch_steps *steps);

/**
 * touch_steps_follow - see how far it has come
 *
 * Return: whether it has moved, or a negative error of read_present().
 */
int touch_steps_follow(struct touch_steps *steps);

/* It has come to the mark of its last window, or had none. */
bool touch_steps_wants(const struct touch_steps *steps);

/**
 * touch_steps_window - the next window, if one may be made
 *
 * Of @window the pages at @window->start and every @window->step behind it are to be made,
 * but not those of the strip.
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
