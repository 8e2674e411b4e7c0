/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Chunks start at the minimum while the cost of a unit is not known, then
 * shrink with what is left, and never take longer than the client asked for.
 */
#include "ktest.h"

#include "core/split.h"

#define COST_NS(ns) ((uint64_t)(ns) << KT_COST_SHIFT)

static struct kt_split split = {
	.min_chunk = 8,
	.align = 1,
	.target_ns = 1000000,
};

static uint64_t size_at(uint64_t left, unsigned threads, uint64_t mean,
			uint64_t high)
{
	struct kt_cost cost = { mean, high };

	return kt_split_size(&split, left, threads, &cost);
}

static void unknown_cost_means_minimum_chunks(void **state)
{
	assert_int_equal(size_at(1000000, 1, 0, 0), 8);
	assert_int_equal(size_at(UINT64_MAX, 64, 0, 0), 8);
}

static void known_cost_means_a_quarter_of_a_share(void **state)
{
	assert_int_equal(size_at(8000, 1, COST_NS(1), COST_NS(1)), 2000);
	assert_int_equal(size_at(8000, 4, COST_NS(1), COST_NS(1)), 500);
	assert_int_equal(size_at(8000, 0, COST_NS(1), COST_NS(1)), 2000);
	assert_int_equal(size_at(8000, 1000, COST_NS(1), COST_NS(1)), 8);
}

static void sizes_shrink_as_work_runs_out(void **state)
{
	uint64_t left = 100000, last = UINT64_MAX;
	unsigned nr = 0;

	while (left) {
		uint64_t size = size_at(left, 4, COST_NS(1), COST_NS(1));

		assert_true(size <= last);
		assert_true(size >= 8);
		last = size;
		left -= KT_MIN(size, left);
		nr++;
	}
	assert_int_equal(last, 8);
	/* Far fewer than 12500 minimum chunks: shares of 1/16 each. */
	assert_in_range(nr, 50, 150);
}

static void dearest_unit_bounds_the_time(void **state)
{
	/* 1 ms at 1000 ns a unit. */
	assert_int_equal(size_at(1 << 30, 2, COST_NS(1000), COST_NS(1000)),
			 1000);
	assert_int_equal(size_at(1 << 30, 2, COST_NS(500), COST_NS(2000)), 500);
	/* A chunk of the minimum is all that may take longer. */
	assert_int_equal(size_at(1 << 30, 2, COST_NS(1e6), COST_NS(1e6)), 8);
}

static void rare_expensive_unit_does_not_make_chunks_tiny(void **state)
{
	/* 20 us at the mean, although one unit may take 1 ms. */
	assert_int_equal(size_at(1 << 30, 2, COST_NS(10), COST_NS(1e6)),
			 KT_SHORTEST_NS / 10);
}

/* A client that asks for 5 us gets 5 us, not the 20 of the rule above. */
static void short_target_is_kept(void **state)
{
	uint64_t target_ns = split.target_ns;
	uint64_t even, uneven;

	split.target_ns = 5000;
	even = size_at(1 << 30, 2, COST_NS(10), COST_NS(10));
	uneven = size_at(1 << 30, 2, COST_NS(10), COST_NS(1e6));
	split.target_ns = target_ns;
	assert_int_equal(even, 500);
	assert_int_equal(uneven, 500);
}

/* Longer than fits the fixed point: the guided size is all there is. */
static void endless_target_is_no_bound(void **state)
{
	static const uint64_t targets_ns[] = { 1ull << 43, 1ull << 44,
					       1ull << 63, UINT64_MAX };
	uint64_t target_ns = split.target_ns;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(targets_ns); i++) {
		uint64_t size;

		split.target_ns = targets_ns[i];
		size = size_at(1 << 30, 1, COST_NS(1), COST_NS(1));
		split.target_ns = target_ns;
		assert_int_equal(size, 1 << 28);
	}
}

static void check_usual(uint64_t min_chunk, uint64_t mean, uint64_t units,
			uint64_t ns)
{
	struct kt_split some = split;
	struct kt_cost cost = { mean, mean };

	some.min_chunk = min_chunk;
	assert_int_equal(kt_split_usual(&some, &cost), units);
	assert_int_equal(kt_split_usual_ns(&some, &cost), ns);
}

/* Of the target's time, or of the minimum where that is longer. */
static void usual_chunks_are_those_of_the_mean_cost(void **state)
{
	check_usual(8, 0, 8, 0);
	check_usual(8, COST_NS(1000), 1000, 1000000);
	check_usual(8, COST_NS(1e6), 8, 8000000);
	check_usual(UINT64_MAX, COST_NS(1000), UINT64_MAX,
		    UINT64_MAX >> KT_COST_SHIFT);
}

KTEST_MAIN(KTEST(unknown_cost_means_minimum_chunks),
	   KTEST(known_cost_means_a_quarter_of_a_share),
	   KTEST(sizes_shrink_as_work_runs_out),
	   KTEST(dearest_unit_bounds_the_time),
	   KTEST(rare_expensive_unit_does_not_make_chunks_tiny),
	   KTEST(short_target_is_kept), KTEST(endless_target_is_no_bound),
	   KTEST(usual_chunks_are_those_of_the_mean_cost))
