/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Finds new frontiers: at both ends of a mapping, and everywhere outside the territories
 * of known frontiers.  Behaves badly: it finds at most 32 frontiers of a mapping.
 */
#include "ahead/frontier_territory.h"
#include "ahead/present_runs.h"

/* A run of fewer pages has no edges: 1 MiB, three where a touch makes 2 MiB. */
#define RUN_PAGES ((size_t)256)
#define RUN_UNITS 3

static void add_frontier(struct touch_tracker *tracker, size_t start,
			 size_t end, bool down, bool moves)
{
	struct touch_frontier *frontier;

	if (tracker->nr == AHEAD_FRONTIERS)
		return;
	frontier = &tracker->frontiers[tracker->nr++];
	*frontier = (struct touch_frontier){
		.origin = down ? tracker->nr_pages - end : start,
		.whole = down ? tracker->nr_pages - end : start,
		.at = down ? tracker->nr_pages - start : end,
		.mark = AHEAD_NOWHERE,
		.down = down,
		.moves = moves,
	};
	frontier->made = frontier->at;
}

static bool is_run(const struct touch_tracker *tracker, size_t nr)
{
	return nr >= RUN_PAGES && nr >= RUN_UNITS * tracker->unit;
}

/* Return: whether it is a new run. */
static int take_run(struct touch_tracker *tracker, size_t start, size_t end)
{
	bool at_end = end == tracker->nr_pages;

	/* Every scan finds a run without a frontier again: do not count it as touched. */
	if (!is_run(tracker, end - start) || tracker->nr == AHEAD_FRONTIERS) {
		tracker->present += end - start;
		return 0;
	}
	tracker->touched += end - start;
	territory_tell(tracker, start, end);
	/* A run that begins at an end of the mapping has only one edge. */
	if (!at_end)
		add_frontier(tracker, start, end, false, !start);
	if (start)
		add_frontier(tracker, start, end, true, at_end);
	return 1;
}

/* A run goes on from one piece into the next; begins at AHEAD_NOWHERE. */
static int scan_piece(struct touch_tracker *tracker, size_t first, size_t nr,
		      size_t *run)
{
	unsigned char present[AHEAD_READ_PAGES];
	int error = tracker->read_present(tracker->arg, first, nr, present);
	int found = 0;

	for (size_t i = 0; !error && i < nr; i++) {
		if (present[i] & 1) {
			*run = *run == AHEAD_NOWHERE ? first + i : *run;
		} else if (*run != AHEAD_NOWHERE) {
			found |= take_run(tracker, *run, first + i);
			*run = AHEAD_NOWHERE;
		}
	}
	return error ? error : found;
}

/* Between two territories, which it does not touch. */
static int scan_gap(struct touch_tracker *tracker, size_t start, size_t end)
{
	size_t run = AHEAD_NOWHERE;
	int found = 0;

	for (size_t at = start; at < end; at += AHEAD_READ_PAGES) {
		size_t nr = end - at < AHEAD_READ_PAGES ? end - at
							: AHEAD_READ_PAGES;
		int now = scan_piece(tracker, at, nr, &run);

		if (now < 0)
			return now;
		found |= now;
	}
	if (run != AHEAD_NOWHERE)
		found |= take_run(tracker, run, end);
	return found;
}

int touch_tracker_scan(struct touch_tracker *tracker)
{
	size_t at = 0;
	int found = 0;

	tracker->present = 0;
	while (at < tracker->nr_pages) {
		size_t start = territory_skip(tracker, at), end;
		int now;

		if (start > at) {
			at = start;
			continue;
		}
		end = territory_next(tracker, at);
		now = scan_gap(tracker, at, end);
		if (now < 0)
			return now;
		found |= now;
		at = end;
	}
	return found;
}

/* A run that begins at an end of the mapping. */
static int probe_end(struct touch_tracker *tracker, bool down)
{
	struct touch_frontier none = { .down = down };
	size_t nr = tracker->nr_pages;
	long at =
		present_until(tracker, down, 0, frontier_limit(tracker, &none));

	if (at < 0 || !is_run(tracker, (size_t)at))
		return at < 0 ? (int)at : 0;
	return down ? take_run(tracker, nr - (size_t)at, nr)
		    : take_run(tracker, 0, (size_t)at);
}

int touch_tracker_probe(struct touch_tracker *tracker)
{
	int found = probe_end(tracker, false);

	return found ? found : probe_end(tracker, true);
}
