/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A chunk is never smaller than the minimum, unless its range is; the tail
 * goes to the last chunk; inner edges are aligned addresses where any are.
 */
#include "ktest.h"

#include "core/split.h"

static uint64_t end_of(uint64_t min_chunk, uint64_t align, uint64_t base,
		       uint64_t from, uint64_t size, uint64_t limit)
{
	struct kt_split split = { .min_chunk = min_chunk, .align = align };

	return kt_split_end(&split, base, from, size, limit);
}

static void unaligned_chunks_have_their_size(void **state)
{
	assert_int_equal(end_of(10, 1, 0, 0, 25, 100), 25);
	assert_int_equal(end_of(10, 1, 7, 25, 10, 100), 35);
	assert_int_equal(end_of(10, 1, 0, 0, 100, 100), 100);
	assert_int_equal(end_of(10, 1, 0, 0, 1000, 100), 100);
}

static void tail_below_the_minimum_is_absorbed(void **state)
{
	assert_int_equal(end_of(10, 1, 0, 0, 90, 100), 90);
	assert_int_equal(end_of(10, 1, 0, 0, 91, 100), 100);
	assert_int_equal(end_of(10, 1, 0, 80, 10, 99), 99);
	assert_int_equal(end_of(10, 1, 0, 80, 10, 100), 90);
}

static void small_range_is_one_chunk(void **state)
{
	assert_int_equal(end_of(10, 1, 0, 0, 10, 9), 9);
	assert_int_equal(end_of(10, 1, 0, 0, 10, 1), 1);
	assert_int_equal(end_of(1, 1, 0, 0, 1, 1), 1);
	assert_int_equal(end_of(UINT64_MAX, 1, 0, 0, UINT64_MAX, 5), 5);
	assert_int_equal(end_of(10, 4096, 3, 0, 10, 19), 19);
}

static void inner_edges_are_aligned_addresses(void **state)
{
	/* Down where the minimum allows it, otherwise up. */
	assert_int_equal(end_of(10, 16, 0, 0, 40, 1000), 32);
	assert_int_equal(end_of(30, 32, 0, 0, 31, 1000), 32);
	assert_int_equal(end_of(40, 32, 0, 0, 40, 1000), 64);
	assert_int_equal(end_of(10, 16, 5, 0, 40, 1000), 27);
	assert_int_equal(end_of(1, 4096, 4095, 0, 1, 100000), 1);
	assert_int_equal(end_of(2, 4096, 4095, 0, 2, 100000), 4097);
}

static void alignment_above_the_size_is_one_step(void **state)
{
	assert_int_equal(end_of(1, 1 << 21, 0, 0, 1, 1 << 23), 1 << 21);
	assert_int_equal(end_of(1, 1 << 21, 0, 1 << 21, 7, 1 << 23), 1 << 22);
	assert_int_equal(end_of(1, 1 << 21, 77, 0, 1, 1 << 23), (1 << 21) - 77);
	/* None within the range: the range is one chunk. */
	assert_int_equal(end_of(1, 1 << 21, 77, 0, 1, 1 << 20), 1 << 20);
}

static void aligned_end_leaves_no_small_tail(void **state)
{
	/* 64 would be the next edge, but it leaves 6 of at least 10. */
	assert_int_equal(end_of(10, 64, 0, 0, 12, 70), 70);
	assert_int_equal(end_of(10, 64, 0, 0, 12, 74), 64);
}

KTEST_MAIN(KTEST(unaligned_chunks_have_their_size),
	   KTEST(tail_below_the_minimum_is_absorbed),
	   KTEST(small_range_is_one_chunk),
	   KTEST(inner_edges_are_aligned_addresses),
	   KTEST(alignment_above_the_size_is_one_step),
	   KTEST(aligned_end_leaves_no_small_tail))
