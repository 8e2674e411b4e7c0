/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A mapping that is touched in order at more places than there are frontiers: however
 * often it is scanned, no more counts as touched than is present.  What counts as touched
 * raises the bound on waste.
 */
#include "ktest.h"

#include "ahead/touch_frontier.h"

#define RUN_PAGES ((size_t)512)
#define NR_RUNS 40
#define NR_PAGES (NR_RUNS * 2 * RUN_PAGES)

/* Every second block is present. */
static int read_present(void *arg, size_t first, size_t nr,
			unsigned char *present)
{
	for (size_t i = 0; i < nr; i++)
		present[i] = (first + i) / RUN_PAGES % 2;
	return 0;
}

static void scans_count_a_run_once(void **unused)
{
	struct touch_tracker tracker;

	touch_tracker_init(&tracker, NR_PAGES, 0, read_present, NULL);
	assert_true(touch_tracker_scan(&tracker));
	assert_int_equal(tracker.nr, AHEAD_FRONTIERS);
	for (int i = 0; i < 100; i++)
		assert_false(touch_tracker_scan(&tracker));
	assert_true(tracker.touched <= NR_RUNS * RUN_PAGES);
	assert_int_equal(tracker.touched + tracker.present,
			 NR_RUNS * RUN_PAGES);
	assert_false(touch_tracker_done(&tracker));
}

KTEST_MAIN(KTEST(scans_count_a_run_once))
