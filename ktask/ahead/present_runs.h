/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Runs of present pages, in the direction of a frontier.
 *
 * Only for touch_frontier.c and find_frontiers.c.
 */
#ifndef AHEAD_PRESENT_RUNS_H
#define AHEAD_PRESENT_RUNS_H

#include "ahead/touch_frontier.h"

/* Return: how many of @nr pages from @at on, at most AHEAD_READ_PAGES, are present
 * without a hole; or an error of read_present(). */
long present_run(struct touch_tracker *tracker, bool down, size_t at,
		 size_t nr);

/* Return: how many positions in [@from, @to) are absent; or an error. */
long absent_between(struct touch_tracker *tracker, bool down, size_t from,
		    size_t to);

/* Return: the first absent position from @at on, at most @limit; or an error. */
long present_until(struct touch_tracker *tracker, bool down, size_t at,
		   size_t limit);

#endif /* AHEAD_PRESENT_RUNS_H */
