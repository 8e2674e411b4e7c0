/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cost of a unit is learnt from any chunk: no time at all, 292 years, one
 * unit, 2^64 - 1 units.  It is never 0 once something is known, and what comes
 * of it is always a size.
 */
#include "ktest.h"

#include "core/split.h"

static const uint64_t extremes[] = {
	1,
	2,
	31,
	1000,
	1u << 20,
	UINT32_MAX,
	1ull << 43,
	(1ull << 43) + 1,
	1ull << 44,
	1ull << 63,
	UINT64_MAX - 1,
	UINT64_MAX,
};

#define NR_EXTREMES KTEST_ARRAY_SIZE(extremes)

static void check_usable(const struct kt_cost *cost)
{
	struct kt_split split = { .min_chunk = 1, .align = 1 };

	assert_true(cost->mean > 0);
	assert_true(cost->high > 0);
	for (unsigned i = 0; i < NR_EXTREMES; i++) {
		split.target_ns = extremes[i];
		assert_true(kt_split_size(&split, UINT64_MAX, 1, cost) >= 1);
	}
}

static void any_chunk_after_any_other(void **state)
{
	for (unsigned i = 0; i < NR_EXTREMES; i++) {
		for (unsigned j = 0; j <= NR_EXTREMES; j++) {
			uint64_t ns = j ? extremes[j - 1] : 0;
			struct kt_cost cost = { 0, 0 };

			kt_cost_add(&cost, extremes[i], ns);
			check_usable(&cost);
			for (unsigned k = 0; k < NR_EXTREMES; k++) {
				struct kt_cost next = cost;

				kt_cost_add(&next, extremes[k], ns);
				kt_cost_add(&next, extremes[i], 0);
				kt_cost_add(&next, 1, extremes[k]);
				check_usable(&next);
			}
		}
	}
}

static void no_time_is_cheap_but_not_free(void **state)
{
	struct kt_cost cost = { 0, 0 };

	kt_cost_add(&cost, UINT64_MAX, 0);
	assert_int_equal(cost.mean, 1);
	assert_int_equal(cost.high, 1);
}

static void endless_chunks_stay_representable(void **state)
{
	struct kt_cost cost = { 0, 0 };
	uint64_t first;

	kt_cost_add(&cost, 1, UINT64_MAX);
	first = cost.high;
	for (unsigned i = 0; i < 1000; i++)
		kt_cost_add(&cost, 1, UINT64_MAX);
	assert_int_equal(cost.high, first);
	assert_true(cost.mean <= first);
	assert_true(cost.mean >= first - 8);
}

static void mean_follows_and_high_decays(void **state)
{
	struct kt_cost cost = { 0, 0 };
	uint64_t ns = 1ull << KT_COST_SHIFT;

	kt_cost_add(&cost, 10, 10000);
	assert_int_equal(cost.mean, 1000 * ns);
	kt_cost_add(&cost, 10, 100000);
	assert_int_equal(cost.high, 10000 * ns);
	for (unsigned i = 0; i < 64; i++)
		kt_cost_add(&cost, 10, 10000);
	assert_in_range(cost.mean, 990 * ns, 1100 * ns);
	assert_in_range(cost.high, 1500 * ns, 2500 * ns);
	for (unsigned i = 0; i < 300; i++)
		kt_cost_add(&cost, 10, 10000);
	assert_in_range(cost.high, 990 * ns, 1100 * ns);
}

KTEST_MAIN(KTEST(any_chunk_after_any_other),
	   KTEST(no_time_is_cheap_but_not_free),
	   KTEST(endless_chunks_stay_representable),
	   KTEST(mean_follows_and_high_decays))
