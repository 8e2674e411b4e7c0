/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * kt_job_check() refuses exactly what core/job.h calls ill-formed.
 */
#include "ktest.h"

#include "core/job.h"

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

static void *keep_position(void *position, size_t size)
{
	return position;
}

struct shape {
	int (*func)(void *start, void *end, void *arg);
	void *(*iter)(void *position, size_t size);
	uint64_t min_chunk, align;
	uintptr_t start[2];
	uint64_t units[2];
};

static int check_shape(const struct shape *shape)
{
	struct kt_range ranges[2] = { 0 };
	struct kt_job job = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		ranges[i].start = (void *)shape->start[i];
		ranges[i].units = shape->units[i];
	}
	job.func = shape->func;
	job.iter = shape->iter;
	job.split.min_chunk = shape->min_chunk;
	job.split.align = shape->align;
	job.ranges = ranges;
	job.nr_ranges = 2;
	return kt_job_check(&job);
}

#define TOP UINTPTR_MAX
#define ALL UINT64_MAX
#define HALF (1ull << 63)

static void good_shapes_pass(void **state)
{
	static const struct shape good[] = {
		{ do_nothing, NULL, 1, 1, { 0, 0 }, { 0, 0 } },
		{ do_nothing, NULL, 1, 1, { 0, 0 }, { ALL, 0 } },
		{ do_nothing, NULL, ALL, 1, { 0, 0 }, { ALL - 1, 1 } },
		{ do_nothing, NULL, 1, HALF, { 5, 7 }, { 9, 9 } },
		{ do_nothing, NULL, 1, 1, { TOP, TOP }, { 0, 0 } },
		{ do_nothing, NULL, 1, 1, { TOP - 10, TOP }, { 10, 0 } },
		{ do_nothing, NULL, 1, 1, { 1, 0 }, { ALL - 1, 1 } },
		/* Positions of an iterator are no addresses. */
		{ do_nothing, keep_position, 1, 1, { TOP, TOP }, { ALL, 0 } },
	};

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(good); i++)
		assert_int_equal(check_shape(&good[i]), 0);
}

static void bad_shapes_are_refused(void **state)
{
	static const struct shape bad[] = {
		{ NULL, NULL, 1, 1, { 0, 0 }, { 1, 1 } },
		{ do_nothing, NULL, 0, 1, { 0, 0 }, { 1, 1 } },
		{ do_nothing, NULL, 1, 0, { 0, 0 }, { 1, 1 } },
		{ do_nothing, NULL, 1, 3, { 0, 0 }, { 1, 1 } },
		{ do_nothing, NULL, 1, 4097, { 0, 0 }, { 1, 1 } },
		{ do_nothing, NULL, 1, ALL, { 0, 0 }, { 1, 1 } },
		/* Past the end of the address space, by one and by all. */
		{ do_nothing, NULL, 1, 1, { TOP, 0 }, { 1, 0 } },
		{ do_nothing, NULL, 1, 1, { 0, TOP - 10 }, { 0, 11 } },
		{ do_nothing, NULL, 1, 1, { 0, 1 }, { 0, ALL } },
		/* More than 2^64 - 1 units in all. */
		{ do_nothing, NULL, 1, 1, { 0, 0 }, { ALL, 1 } },
		{ do_nothing, NULL, 1, 1, { 0, 0 }, { HALF, HALF } },
		{ do_nothing, keep_position, 1, 1, { 0, 0 }, { ALL, ALL } },
	};

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(bad); i++)
		assert_int_equal(check_shape(&bad[i]), -EINVAL);
}

KTEST_MAIN(KTEST(good_shapes_pass), KTEST(bad_shapes_are_refused))
