/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that leaves pages of a window out and goes on, as a JVM does at the end of a
 * thread's buffer, is found behind the window at the next poll.  Nobody looks at all pages
 * for that, which is done ever more rarely.
 */
#include <string.h>

#include "ktest.h"

#include "ahead/touch_frontier.h"

#define NR_PAGES ((size_t)1 << 20)

static unsigned char present[NR_PAGES];
static bool is_down;

static int read_present(void *arg, size_t first, size_t nr, unsigned char *to)
{
	memcpy(to, present + first, nr);
	return 0;
}

/* In the direction of the program. */
static void touch_pages(size_t from, size_t to)
{
	for (size_t at = from; at < to; at++)
		present[touch_page(NR_PAGES, is_down, at)] = 1;
}

static struct touch_window begin_window(struct touch_tracker *tracker)
{
	struct touch_window window;

	memset(present, 0, sizeof(present));
	touch_tracker_init(tracker, NR_PAGES, 0, read_present, NULL);
	touch_pages(0, 1000);
	assert_int_equal(touch_tracker_probe(tracker), 1);
	assert_true(touch_tracker_window(tracker, &window));
	assert_int_equal(window.down, is_down);
	return window;
}

/* Whether the tracker wants a window behind @end, in polls without a scan. */
static bool is_found_behind(struct touch_tracker *tracker, size_t end)
{
	struct touch_window window;

	for (size_t at = end; at < end + 4096; at += 256) {
		touch_pages(at, at + 256);
		if (!touch_tracker_follow(tracker))
			assert_true(touch_tracker_scan_behind(tracker) >= 0);
	}
	return touch_tracker_window(tracker, &window) && window.start >= end;
}

static void a_hole_in_the_window_stops_nobody(void **unused)
{
	for (int down = 0; down < 2; down++) {
		struct touch_tracker tracker;
		struct touch_window window;

		is_down = down;
		window = begin_window(&tracker);
		/* All but one page, which the mark waits for. */
		touch_pages(1000, window.end);
		present[touch_page(NR_PAGES, is_down, window.mark + 1)] = 0;
		assert_true(is_found_behind(&tracker, window.end));
	}
}

/* Its pages may be wasted, so they count against the bound. */
static void the_window_with_the_hole_stays_pending(void **unused)
{
	struct touch_tracker tracker;
	struct touch_window window;

	is_down = false;
	window = begin_window(&tracker);
	touch_pages(window.end, window.end + 4096);
	assert_int_equal(touch_tracker_follow(&tracker), 0);
	assert_int_equal(touch_tracker_scan_behind(&tracker), 1);
	assert_true(touch_tracker_pending(&tracker) >=
		    window.end - window.start);
}

static void who_waits_in_the_window_is_not_found_twice(void **unused)
{
	struct touch_tracker tracker;

	is_down = false;
	begin_window(&tracker);
	assert_int_equal(touch_tracker_scan_behind(&tracker), 0);
	assert_int_equal(tracker.nr, 1);
}

/* Scattered pages are what the last scan of all of them found. */
static void short_runs_behind_it_do_not_count(void **unused)
{
	struct touch_tracker tracker;
	struct touch_window window;

	is_down = false;
	window = begin_window(&tracker);
	touch_pages(window.end + 100, window.end + 200);
	assert_int_equal(touch_tracker_scan_behind(&tracker), 0);
	assert_int_equal(tracker.present, 0);
}

KTEST_MAIN(KTEST(a_hole_in_the_window_stops_nobody),
	   KTEST(the_window_with_the_hole_stays_pending),
	   KTEST(who_waits_in_the_window_is_not_found_twice),
	   KTEST(short_runs_behind_it_do_not_count))
