/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktaskd makes memory ahead only where there is enough for what served processes may
 * still touch.  A process that pretends to touch a terabyte, or hundreds that do, gain
 * nothing by that and take the daemon from nobody; a mapping counts from when a program
 * goes on in it.
 */
#include <string.h>

#include "ktest.h"

#include "ahead/touch_frontier.h"
#include "daemon/memory_claims.h"

#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

static bool is_served(uint64_t available, uint64_t own, uint64_t other,
		      unsigned nr_others)
{
	struct memory_claims claims = { .available = available, .own = own };

	for (unsigned i = 0; i < nr_others; i++)
		claims_add_other(&claims, other);
	return claims_are_met(&claims);
}

static void whoever_pretends_is_not_served(void **unused)
{
	assert_false(is_served(16 * GIB, TIB, 0, 0));
	assert_false(is_served(16 * GIB, 16 * GIB, 0, 0));
}

static void one_that_pretends_stops_nobody(void **unused)
{
	assert_true(is_served(16 * GIB, 8 * GIB, TIB, 1));
	assert_true(is_served(16 * GIB, GIB, UINT64_MAX, 1));
}

static void nor_do_hundreds(void **unused)
{
	for (unsigned nr = 1; nr < 256; nr++)
		assert_true(is_served(16 * GIB, 7 * GIB, TIB, nr));
}

/* What is claimed within reason counts to the last byte. */
static void claims_that_can_be_met_count(void **unused)
{
	assert_true(is_served(16 * GIB, 10 * GIB, GIB, 5));
	assert_false(is_served(16 * GIB, 11 * GIB, GIB, 5));
	assert_false(is_served(0, 0, 0, 0));
}

static unsigned char present[64 * AHEAD_BLOCK_PAGES];

static int read_present(void *arg, size_t first, size_t nr, unsigned char *to)
{
	memcpy(to, present + first, nr);
	return 0;
}

static void a_mapping_counts_once_somebody_goes_on_in_it(void **unused)
{
	const size_t middle = sizeof(present) / 2;
	struct touch_tracker tracker;

	touch_tracker_init(&tracker, sizeof(present), 0, read_present, NULL);
	assert_int_equal(touch_tracker_untouched(&tracker), 0);
	/* A run somewhere, which may have been there for a year. */
	memset(present + middle, 1, 1000);
	assert_true(touch_tracker_scan(&tracker));
	assert_int_equal(touch_tracker_untouched(&tracker), 0);
	memset(present + middle, 1, 2000);
	assert_true(touch_tracker_follow(&tracker));
	assert_int_equal(touch_tracker_untouched(&tracker),
			 sizeof(present) - 2000);
}

KTEST_MAIN(KTEST(whoever_pretends_is_not_served),
	   KTEST(one_that_pretends_stops_nobody), KTEST(nor_do_hundreds),
	   KTEST(claims_that_can_be_met_count),
	   KTEST(a_mapping_counts_once_somebody_goes_on_in_it))
