/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a device is given in one call grows until half of the stall budget is
 * used, shrinks at once where it takes longer, and is made of whole units.
 */
#include "ktest.h"

#include "ops/piece_size.c"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define BUDGET_SEC 0.05

static const struct piece_limits any = { 1, 0, BUDGET_SEC };

/* Bytes a call of a device that takes @sec_per_byte, after many calls. */
static size_t settle_size(const struct piece_limits *limits,
			  double sec_per_byte, double *longest_sec)
{
	double cost = 0;
	size_t bytes = 0;

	*longest_sec = 0;
	for (int i = 0; i < 100; i++) {
		double sec;

		bytes = piece_size(limits, cost, bytes, 1000 * GIB);
		sec = (double)bytes * sec_per_byte;
		if (sec > *longest_sec)
			*longest_sec = sec;
		cost = piece_cost(cost, bytes, sec);
	}
	return bytes;
}

static void pieces_settle_at_half_of_the_budget(void **state)
{
	const double costs[] = { 1e-9, 1e-10, 3e-11, 3e-12 };
	double longest;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(costs); i++) {
		double sec = (double)settle_size(&any, costs[i], &longest) *
			     costs[i];

		assert_true(sec > 0.9 * BUDGET_SEC / 2);
		assert_true(longest <= 1.01 * BUDGET_SEC / 2);
	}
}

static void first_pieces_are_small_and_grow_by_steps(void **state)
{
	size_t bytes = piece_size(&any, 0, 0, GIB);

	assert_int_equal(bytes, 4 * MIB);
	assert_int_equal(piece_size(&any, 1e-15, bytes, GIB), 16 * MIB);
	assert_int_equal(piece_size(&any, 0, bytes, GIB), 4 * MIB);
}

static void slower_calls_shrink_pieces_at_once(void **state)
{
	double cost = piece_cost(1e-12, GIB, 0.5);

	assert_true(cost * (double)GIB > 0.49);
	assert_in_range(piece_size(&any, cost, GIB, GIB), GIB / 21,
			GIB / 20 + MIB);
}

static void faster_calls_are_believed_slowly(void **state)
{
	double cost = 1e-9;

	cost = piece_cost(cost, MIB, 0);
	assert_true(cost > 0.7e-9 && cost < 0.8e-9);
	for (int i = 0; i < 100; i++)
		cost = piece_cost(cost, MIB, 1e-10 * (double)MIB);
	assert_true(cost > 0.9e-10 && cost < 1.1e-10);
}

static void pieces_are_whole_units_within_bounds(void **state)
{
	struct piece_limits limits = { 3 * MIB, 10 * MIB, BUDGET_SEC };

	assert_int_equal(piece_size(&limits, 0, 0, GIB), 3 * MIB);
	assert_int_equal(piece_size(&limits, 1e-15, 3 * MIB, GIB), 9 * MIB);
	assert_int_equal(piece_size(&limits, 1e-15, 9 * MIB, 5), 5);
	/* A unit that takes longer than the budget cannot be divided. */
	assert_int_equal(piece_size(&limits, 1, 9 * MIB, GIB), 3 * MIB);
	limits.unit_bytes = GIB;
	assert_int_equal(piece_size(&limits, 0, 0, 2 * GIB), GIB);
	assert_int_equal(piece_size(&limits, 0, 0, GIB - 1), GIB - 1);
}

static void extremes_give_a_piece(void **state)
{
	const double costs[] = { 0, -1, 1e-300, 1e300, 1.0 / 0.0, 0.0 / 0.0 };
	const size_t sizes[] = { 1, GIB, SIZE_MAX };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(costs); i++)
		for (unsigned j = 0; j < KTEST_ARRAY_SIZE(sizes); j++)
			for (unsigned k = 0; k < KTEST_ARRAY_SIZE(sizes); k++)
				assert_in_range(piece_size(&any, costs[i],
							   sizes[j], sizes[k]),
						1, sizes[k]);
}

KTEST_MAIN(KTEST(pieces_settle_at_half_of_the_budget),
	   KTEST(first_pieces_are_small_and_grow_by_steps),
	   KTEST(slower_calls_shrink_pieces_at_once),
	   KTEST(faster_calls_are_believed_slowly),
	   KTEST(pieces_are_whole_units_within_bounds),
	   KTEST(extremes_give_a_piece))
