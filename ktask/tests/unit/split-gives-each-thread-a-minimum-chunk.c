/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job gets no more threads than it has minimum chunks, and never none.
 */
#include "ktest.h"

#include "core/split.h"

static void threads_are_minimum_chunks(void **state)
{
	static const struct {
		uint64_t units, min_chunk;
		unsigned max, threads;
	} rows[] = {
		{ 0, 1, 8, 1 },
		{ 1, 1, 8, 1 },
		{ 7, 1, 8, 7 },
		{ 8, 1, 8, 8 },
		{ 9, 1, 8, 8 },
		{ 99, 100, 8, 1 },
		{ 199, 100, 8, 1 },
		{ 200, 100, 8, 2 },
		{ 100, 0, 8, 8 },
		{ 100, 1, 0, 1 },
		{ UINT64_MAX, 1, 64, 64 },
		{ UINT64_MAX, 1, UINT32_MAX, UINT32_MAX },
		{ UINT64_MAX, UINT64_MAX, 64, 1 },
		{ UINT64_MAX - 1, UINT64_MAX, 64, 1 },
		{ 1ull << 32, 1, UINT32_MAX, UINT32_MAX },
	};

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(rows); i++)
		assert_int_equal(kt_split_threads(rows[i].units,
						  rows[i].min_chunk,
						  rows[i].max),
				 rows[i].threads);
}

KTEST_MAIN(KTEST(threads_are_minimum_chunks))
