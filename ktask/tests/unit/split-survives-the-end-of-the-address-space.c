/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Edges near 2^64 are computed without wrapping around.
 */
#include "ktest.h"

#include "core/split.h"

/* Walk a range, return its chunks; every one must move on. */
static unsigned walk_range(uint64_t min_chunk, uint64_t align, uint64_t base,
			   uint64_t units)
{
	struct kt_split split = { .min_chunk = min_chunk, .align = align };
	unsigned nr = 0;
	uint64_t from = 0;

	while (from < units) {
		uint64_t to =
			kt_split_end(&split, base, from, min_chunk, units);

		assert_true(to > from && to <= units);
		assert_true(to == units || to - from >= min_chunk);
		assert_true(to == units || !((base + to) & (align - 1)));
		from = to;
		nr++;
	}
	return nr;
}

static void last_addresses_are_reached(void **state)
{
	assert_int_equal(walk_range(1, 1, UINT64_MAX - 10, 10), 10);
	assert_int_equal(walk_range(3, 1, UINT64_MAX - 10, 10), 3);
	assert_int_equal(walk_range(10, 1, UINT64_MAX - 10, 10), 1);
	assert_int_equal(walk_range(1, 1, UINT64_MAX - 1, 1), 1);
	assert_int_equal(walk_range(1, 1, UINT64_MAX, 0), 0);
}

static void no_aligned_edge_is_left(void **state)
{
	/* The next multiple would be 2^64. */
	assert_int_equal(walk_range(1, 4096, UINT64_MAX - 10, 10), 1);
	assert_int_equal(walk_range(1, 4096, UINT64_MAX - 5000, 5000), 2);
	assert_int_equal(walk_range(1, 1ull << 63, UINT64_MAX - 5000, 5000), 1);
	assert_int_equal(walk_range(1, 1ull << 63, 0, UINT64_MAX), 2);
}

static void whole_space_is_a_range(void **state)
{
	assert_int_equal(walk_range(1ull << 62, 1, 0, UINT64_MAX), 3);
	assert_int_equal(walk_range(UINT64_MAX, 1, 0, UINT64_MAX), 1);
	assert_int_equal(walk_range(1ull << 62, 1ull << 62, 0, UINT64_MAX), 3);
	assert_int_equal(
		walk_range((1ull << 62) + 1, 1ull << 62, 0, UINT64_MAX), 2);
	assert_int_equal(
		walk_range(1ull << 60, 1ull << 21, 12345, UINT64_MAX - 12345),
		15);
}

static void sizes_do_not_overflow(void **state)
{
	struct kt_split split = { 1, 1, UINT64_MAX };
	struct kt_cost cheap = { 1, 1 };
	struct kt_cost expensive = { UINT64_MAX, UINT64_MAX };
	struct kt_cost unknown = { 0, 0 };

	assert_int_equal(kt_split_size(&split, UINT64_MAX, 1, &cheap),
			 UINT64_MAX / 4);
	assert_int_equal(kt_split_size(&split, UINT64_MAX, UINT32_MAX, &cheap),
			 UINT64_MAX / 4 / UINT32_MAX);
	assert_int_equal(kt_split_size(&split, UINT64_MAX, 1, &expensive), 1);
	assert_int_equal(kt_split_size(&split, UINT64_MAX, 0, &unknown), 1);
	assert_int_equal(kt_split_size(&split, 1, 0, &cheap), 1);
}

KTEST_MAIN(KTEST(last_addresses_are_reached), KTEST(no_aligned_edge_is_left),
	   KTEST(whole_space_is_a_range), KTEST(sizes_do_not_overflow))
