/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program that leaves a few pages out and goes on, as a JVM does at the end of a
 * thread's buffer, has passed the window.  It is helped on, by one frontier, and what it
 * seems to have left out of windows counts as wasted.
 */
#include <string.h>

#include "ktest.h"

#include "support/fast_helper.h"

#define NR_PAGES ((size_t)1 << 18)
/* Between two holes: 16 MiB. */
#define BUFFER_PAGES ((size_t)4096)

struct walk {
	struct touch_tracker tracker;
	bool down;
	size_t unit, hole; /* pages left out of each buffer */
	size_t nr_made, nr_windows;
};

static unsigned char present[NR_PAGES];

static int read_present(void *arg, size_t first, size_t nr, unsigned char *to)
{
	(void)arg;
	memcpy(to, present + first, nr);
	return 0;
}

static void watch_walk(struct walk *walk)
{
	struct touch_tracker *tracker = &walk->tracker;
	struct touch_window window;

	assert_true(touch_tracker_follow(tracker) >= 0);
	assert_true(touch_tracker_probe(tracker) >= 0);
	while (touch_tracker_window(tracker, &window)) {
		walk->nr_windows++;
		walk->nr_made += helper_make_window(&window, walk->unit,
						    present, NR_PAGES);
	}
}

static void touch_all(struct walk *walk)
{
	memset(present, 0, sizeof(present));
	touch_tracker_init(&walk->tracker, NR_PAGES, 0, read_present, NULL);
	walk->tracker.unit = walk->unit;
	walk->tracker.advised = walk->unit > 1;
	for (size_t at = 0; at < NR_PAGES; at++) {
		if (at % BUFFER_PAGES < BUFFER_PAGES - walk->hole)
			present[touch_page(NR_PAGES, walk->down, at)] = 1;
		if (at % 64 == 0)
			watch_walk(walk);
	}
}

static void dozens_of_holes_stop_nobody(void **unused)
{
	for (unsigned way = 0; way < 4; way++) {
		struct walk walk = {
			.down = way % 2,
			.unit = way / 2 ? AHEAD_BLOCK_PAGES : 1,
			.hole = 8,
		};

		touch_all(&walk);
		if (walk.nr_made < NR_PAGES / 2)
			fail_msg("way %u: %zu of %zu pages made", way,
				 walk.nr_made, NR_PAGES);
		assert_true(touch_tracker_moving(&walk.tracker) <= 2);
	}
}

/* As much is left out of what was made as of what was left to it, perhaps. */
static void what_is_left_out_counts_as_wasted(void **unused)
{
	struct walk walk = { .unit = AHEAD_BLOCK_PAGES, .hole = 40 };
	struct walk none = { .unit = AHEAD_BLOCK_PAGES };

	touch_all(&walk);
	assert_true(walk.tracker.skipped > 0);
	touch_all(&none);
	assert_int_equal(none.tracker.skipped, 0);
}

/* Every second page, from some place on. */
static void who_leaves_much_out_is_not_followed(void **unused)
{
	struct walk walk = { .unit = 1 };
	size_t begin = 8 * BUFFER_PAGES, windows;

	memset(present, 0, sizeof(present));
	touch_tracker_init(&walk.tracker, NR_PAGES, 0, read_present, NULL);
	walk.tracker.unit = 1;
	for (size_t at = 0; at < begin; at++) {
		present[at] = 1;
		if (at % 64 == 0)
			watch_walk(&walk);
	}
	windows = walk.nr_windows;
	for (size_t at = begin; at < NR_PAGES; at++) {
		if (at % 2)
			present[at] = 1;
		if (at % 64 == 0)
			watch_walk(&walk);
	}
	assert_true(walk.nr_windows <= windows + 1);
	assert_int_equal(walk.tracker.skipped, 0);
}

KTEST_MAIN(KTEST(dozens_of_holes_stop_nobody),
	   KTEST(what_is_left_out_counts_as_wasted),
	   KTEST(who_leaves_much_out_is_not_followed))
