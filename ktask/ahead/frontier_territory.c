/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See frontier_territory.h. */
#include "ahead/frontier_territory.h"

void frontier_territory(const struct touch_tracker *tracker,
			const struct touch_frontier *frontier, size_t *start,
			size_t *end)
{
	*start = frontier->origin;
	*end = frontier_end(frontier);
	if (!frontier->down)
		return;
	*start = tracker->nr_pages - frontier_end(frontier);
	*end = tracker->nr_pages - frontier->origin;
}

size_t frontier_limit(const struct touch_tracker *tracker,
		      const struct touch_frontier *frontier)
{
	size_t limit = tracker->nr_pages;

	for (unsigned i = 0; i < tracker->nr; i++) {
		size_t start, end;

		if (&tracker->frontiers[i] == frontier)
			continue;
		frontier_territory(tracker, &tracker->frontiers[i], &start,
				   &end);
		if (frontier->down) {
			size_t below = tracker->nr_pages - end;

			end = tracker->nr_pages - start;
			start = below;
		}
		if (start < frontier_end(frontier))
			start = frontier_end(frontier);
		if (end > start && start < limit)
			limit = start;
	}
	return limit;
}

size_t territory_skip(const struct touch_tracker *tracker, size_t page)
{
	for (unsigned i = 0; i < tracker->nr; i++) {
		size_t start, end;

		frontier_territory(tracker, &tracker->frontiers[i], &start,
				   &end);
		if (page >= start && page < end)
			return end;
	}
	return page;
}

size_t territory_next(const struct touch_tracker *tracker, size_t page)
{
	size_t next = tracker->nr_pages;

	for (unsigned i = 0; i < tracker->nr; i++) {
		size_t start, end;

		frontier_territory(tracker, &tracker->frontiers[i], &start,
				   &end);
		if (start > page && start < next)
			next = start;
	}
	return next;
}
