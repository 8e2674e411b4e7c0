/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A window is twice the last one only where the program arrives at the mark of that.
 * Where it rests, or goes on elsewhere for long, the next window is as small as the
 * first.
 */
#include <string.h>

#include "ktest.h"

#include "support/fast_helper.h"

#define NR_PAGES ((size_t)1 << 20)
#define HALF (NR_PAGES / 2)
#define GROWN (8 * AHEAD_BLOCK_PAGES)

static unsigned char present[NR_PAGES];
static size_t largest; /* window since it was set to 0 */

static int read_present(void *arg, size_t first, size_t nr, unsigned char *to)
{
	memcpy(to, present + first, nr);
	return 0;
}

static void watch_touches(struct touch_tracker *tracker)
{
	struct touch_window window;

	assert_true(touch_tracker_follow(tracker) >= 0);
	while (touch_tracker_window(tracker, &window)) {
		size_t pages = window.end - window.start;

		largest = pages > largest ? pages : largest;
		helper_make_window(&window, 1, present, NR_PAGES);
	}
}

/* The program goes on from @at until a window of @pages was made.  Return: where it is. */
static size_t touch_until(struct touch_tracker *tracker, size_t at,
			  size_t pages)
{
	largest = 0;
	while (largest < pages) {
		present[at++] = 1;
		assert_true(at < NR_PAGES - 1);
		if (at % 64 == 0)
			watch_touches(tracker);
	}
	return at;
}

static size_t begin_at(struct touch_tracker *tracker, size_t at)
{
	memset(present + at, 1, 1000);
	assert_true(touch_tracker_scan(tracker));
	return touch_until(tracker, at + 1000, GROWN);
}

static void begin_tracker(struct touch_tracker *tracker)
{
	memset(present, 0, sizeof(present));
	touch_tracker_init(tracker, NR_PAGES, 0, read_present, NULL);
}

static void who_goes_on_has_larger_ones(void **unused)
{
	struct touch_tracker tracker;
	size_t at;

	begin_tracker(&tracker);
	at = begin_at(&tracker, 0);
	touch_until(&tracker, at, 1);
	assert_true(largest >= GROWN);
}

static void who_rests_begins_small(void **unused)
{
	struct touch_tracker tracker;
	size_t at;

	begin_tracker(&tracker);
	at = begin_at(&tracker, 0);
	touch_tracker_rest(&tracker);
	at = touch_until(&tracker, at, 1);
	assert_int_equal(largest, AHEAD_BLOCK_PAGES);
	/* And grows again. */
	touch_until(&tracker, at, GROWN);
}

static void who_was_elsewhere_begins_small(void **unused)
{
	struct touch_tracker tracker;
	size_t at, other;

	begin_tracker(&tracker);
	at = begin_at(&tracker, 0);
	other = begin_at(&tracker, HALF);
	for (; other < NR_PAGES - 1; other++) {
		present[other] = 1;
		if (other % 64 == 0)
			watch_touches(&tracker);
	}
	touch_until(&tracker, at, 1);
	assert_int_equal(largest, AHEAD_BLOCK_PAGES);
}

KTEST_MAIN(KTEST(who_goes_on_has_larger_ones), KTEST(who_rests_begins_small),
	   KTEST(who_was_elsewhere_begins_small))
