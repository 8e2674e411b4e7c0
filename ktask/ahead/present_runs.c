/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See present_runs.h. */
#include "ahead/present_runs.h"

static int read_pages(struct touch_tracker *tracker, bool down, size_t at,
		      size_t nr, unsigned char *present)
{
	size_t first = down ? tracker->nr_pages - at - nr : at;

	return tracker->read_present(tracker->arg, first, nr, present);
}

long present_run(struct touch_tracker *tracker, bool down, size_t at, size_t nr)
{
	unsigned char present[AHEAD_READ_PAGES];
	int error = read_pages(tracker, down, at, nr, present);
	size_t run = 0;

	if (error)
		return error;
	while (run < nr && present[down ? nr - 1 - run : run] & 1)
		run++;
	return (long)run;
}

long present_until(struct touch_tracker *tracker, bool down, size_t at,
		   size_t limit)
{
	/* Mostly it is near. */
	size_t most = AHEAD_STRIP_PAGES;

	while (at < limit) {
		size_t nr = limit - at < most ? limit - at : most;
		long run = present_run(tracker, down, at, nr);

		if (run < 0)
			return run;
		at += (size_t)run;
		if ((size_t)run < nr)
			break;
		most = 2 * most > AHEAD_READ_PAGES ? AHEAD_READ_PAGES
						   : 2 * most;
	}
	return (long)at;
}

long absent_between(struct touch_tracker *tracker, bool down, size_t from,
		    size_t to)
{
	unsigned char present[AHEAD_READ_PAGES];
	long absent = 0;

	for (size_t at = from; at < to; at += AHEAD_READ_PAGES) {
		size_t nr =
			to - at < AHEAD_READ_PAGES ? to - at : AHEAD_READ_PAGES;
		int error = read_pages(tracker, down, at, nr, present);

		if (error)
			return error;
		absent += (long)touch_count_absent(present, nr);
	}
	return absent;
}
