/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The shim knows beside which memory it has taken back its advice: what is unmapped is
 * forgotten but for holes, what adjoins counts, and who cannot have the table does without.
 */
#include "ktest.h"

#include "preload/ahead/joined_ranges.c"

static int forget_all(void **state)
{
	joined_ranges_drop(0, UINTPTR_MAX);
	return 0;
}

static void what_adjoins_touches(void **state)
{
	assert_false(joined_ranges_touch(0, 100));
	joined_ranges_add(100, 200);
	assert_true(joined_ranges_touch(0, 100));
	assert_true(joined_ranges_touch(200, 300));
	assert_true(joined_ranges_touch(120, 130));
	assert_false(joined_ranges_touch(0, 99));
	assert_false(joined_ranges_touch(201, 300));
	joined_ranges_add(300, 300);
	assert_false(joined_ranges_touch(300, 310));
}

static void what_is_unmapped_is_forgotten(void **state)
{
	joined_ranges_add(100, 200);
	joined_ranges_drop(90, 110);
	assert_false(joined_ranges_touch(90, 109));
	assert_true(joined_ranges_touch(110, 120));
	joined_ranges_drop(190, 200);
	assert_false(joined_ranges_touch(191, 250));
	/* A hole has the rest on both sides. */
	joined_ranges_drop(140, 150);
	assert_true(joined_ranges_touch(141, 149));
	joined_ranges_drop(110, 190);
	assert_false(joined_ranges_touch(0, 1000));
}

static void what_meets_is_one(void **state)
{
	joined_ranges_add(100, 200);
	joined_ranges_add(300, 400);
	joined_ranges_add(200, 300);
	joined_ranges_drop(150, 350);
	assert_true(joined_ranges_touch(200, 300));
	joined_ranges_drop(100, 400);
	assert_false(joined_ranges_touch(0, 1000));
}

static void there_may_be_too_many(void **state)
{
	for (uintptr_t i = 0; i < 3 * NR_RANGES; i++)
		joined_ranges_add(1000 * i, 1000 * i + 10);
	assert_true(joined_ranges_touch(1000 * (3 * NR_RANGES - 1),
					1000 * (3 * NR_RANGES - 1) + 1));
	assert_false(joined_ranges_touch(1000, 1001));
}

static void nobody_waits_for_the_table(void **state)
{
	joined_ranges_add(100, 200);
	assert_true(take_table());
	joined_ranges_add(300, 400);
	assert_false(joined_ranges_touch(100, 200));
	joined_ranges_forked();
	assert_true(joined_ranges_touch(100, 200));
	assert_false(joined_ranges_touch(300, 400));
}

static void no_range_is_better_than_a_wrong_one(void **state)
{
	joined_ranges_add(100, 200);
	joined_ranges_add(300, 400);
	assert_true(take_table());
	joined_ranges_drop(100, 200);
	joined_ranges_forked();
	assert_false(joined_ranges_touch(100, 200));
	assert_false(joined_ranges_touch(300, 400));
	joined_ranges_add(100, 200);
	assert_true(joined_ranges_touch(100, 200));
}

KTEST_MAIN(cmocka_unit_test_setup(what_adjoins_touches, forget_all),
	   cmocka_unit_test_setup(what_is_unmapped_is_forgotten, forget_all),
	   cmocka_unit_test_setup(what_meets_is_one, forget_all),
	   cmocka_unit_test_setup(there_may_be_too_many, forget_all),
	   cmocka_unit_test_setup(nobody_waits_for_the_table, forget_all),
	   cmocka_unit_test_setup(no_range_is_better_than_a_wrong_one,
				  forget_all))
