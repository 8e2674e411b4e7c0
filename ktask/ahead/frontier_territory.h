/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The territory of a frontier reaches from where its run began to the end of the windows
 * ahead of it.  No scan searches a territory, and no window of another frontier reaches
 * into it.
 *
 * Only for touch_frontier.c and find_frontiers.c.
 */
#ifndef AHEAD_FRONTIER_TERRITORY_H
#define AHEAD_FRONTIER_TERRITORY_H

#include "ahead/touch_frontier.h"

static inline size_t frontier_end(const struct touch_frontier *frontier)
{
	return frontier->made > frontier->at ? frontier->made : frontier->at;
}

/* As pages of the mapping, [*start, *end). */
void frontier_territory(const struct touch_tracker *tracker,
			const struct touch_frontier *frontier, size_t *start,
			size_t *end);

/* Where the territory of another begins, in the direction of @frontier. */
size_t frontier_limit(const struct touch_tracker *tracker,
		      const struct touch_frontier *frontier);

/* The end of a territory that @page lies in, or the page. */
size_t territory_skip(const struct touch_tracker *tracker, size_t page);

/* Where the next territory behind @page begins. */
size_t territory_next(const struct touch_tracker *tracker, size_t page);

/* The program has touched the pages [@first, @end). */
static inline void territory_tell(const struct touch_tracker *tracker,
				  size_t first, size_t end)
{
	if (tracker->passed)
		tracker->passed(tracker->arg, first, end);
}

#endif /* AHEAD_FRONTIER_TERRITORY_H */
