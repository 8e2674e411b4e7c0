/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The size of windows: one block at first, twice the last one where somebody arrives,
 * never beyond the bound, and no frontier takes what others need.
 */
#include "ktest.h"

#include "ahead/ahead_window.h"

#define BLOCK AHEAD_BLOCK_PAGES

static void the_first_window_is_a_part_of_the_mapping(void **unused)
{
	assert_int_equal(ahead_first_pages(0), BLOCK);
	assert_int_equal(ahead_first_pages(8192), BLOCK);
	assert_int_equal(ahead_first_pages(16 * 2 * BLOCK), 2 * BLOCK);
	assert_int_equal(ahead_first_pages(512 * BLOCK), 8 * BLOCK);
	assert_int_equal(ahead_first_pages(64 * 20 * BLOCK), 20 * BLOCK);
	assert_int_equal(ahead_first_pages((size_t)1 << 40), 32 * BLOCK);
}

static void windows_double_up_to_half_of_the_bound(void **unused)
{
	struct ahead_budget budget = { 8 * BLOCK, 0, 0, 1, 0 };
	size_t last = 0;

	for (size_t want = BLOCK; want <= 4 * BLOCK; want *= 2) {
		last = ahead_window_pages(&budget, last, 0);
		assert_int_equal(last, want);
	}
	assert_int_equal(ahead_window_pages(&budget, last, 0), 4 * BLOCK);
	budget.touched = 100 * 100 * BLOCK;
	assert_int_equal(ahead_window_pages(&budget, last, 0), 8 * BLOCK);
	assert_int_equal(ahead_window_pages(&budget, 1000 * BLOCK, 0),
			 32 * BLOCK);
}

static void what_is_pending_counts(void **unused)
{
	struct ahead_budget budget = { 4 * BLOCK, 0, 3 * BLOCK, 1, 0 };

	assert_int_equal(ahead_window_pages(&budget, 8 * BLOCK, 0), BLOCK);
	budget.pending = 3 * BLOCK + 1;
	assert_int_equal(ahead_window_pages(&budget, 8 * BLOCK, 0), 0);
	budget.pending = SIZE_MAX;
	assert_int_equal(ahead_window_pages(&budget, 8 * BLOCK, 0), 0);
}

/* What is its own will be passed, and then a large window fits. */
static void a_frontier_waits_for_a_share_of_its_own(void **unused)
{
	struct ahead_budget budget = { 8 * BLOCK, 0, 4 * BLOCK, 1, 0 };

	assert_int_equal(ahead_window_pages(&budget, 8 * BLOCK, 4 * BLOCK),
			 4 * BLOCK);
	budget.pending = 5 * BLOCK;
	assert_int_equal(ahead_window_pages(&budget, 8 * BLOCK, 5 * BLOCK), 0);
	assert_int_equal(ahead_window_pages(&budget, BLOCK, 5 * BLOCK),
			 2 * BLOCK);
}

static void a_window_fits_while_the_program_passes_the_last(void **unused)
{
	for (size_t touched = 0; touched < 2000 * BLOCK; touched += BLOCK) {
		struct ahead_budget budget = { 8 * BLOCK, touched, 0, 1, 0 };
		size_t window = ahead_window_pages(&budget, 1000 * BLOCK, 0);

		assert_true(window >= 3 * BLOCK);
		budget.pending = window;
		assert_true(ahead_window_pages(&budget, window, window) > 0);
	}
}

static void frontiers_share(void **unused)
{
	struct ahead_budget budget = { 8 * BLOCK, 0, 0, 4, 0 };

	assert_int_equal(ahead_window_pages(&budget, 8 * BLOCK, 0), BLOCK);
	assert_int_equal(ahead_window_pages(&budget, 8 * BLOCK, BLOCK), BLOCK);
	assert_int_equal(ahead_window_pages(&budget, 8 * BLOCK, 2 * BLOCK), 0);
	budget.frontiers = 32;
	assert_int_equal(ahead_window_pages(&budget, 0, 0), 0);
}

KTEST_MAIN(KTEST(the_first_window_is_a_part_of_the_mapping),
	   KTEST(windows_double_up_to_half_of_the_bound),
	   KTEST(what_is_pending_counts),
	   KTEST(a_frontier_waits_for_a_share_of_its_own),
	   KTEST(a_window_fits_while_the_program_passes_the_last),
	   KTEST(frontiers_share))
