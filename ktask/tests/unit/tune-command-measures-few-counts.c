/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * `ktask tune` measures few counts and takes one that is within 5 % of the
 * best, with no more threads than that needs.
 */
#include "ktest.h"
#include "support/curve.h"

#include "cli/bench/tune_counts.c"

static struct pick points[PICK_MAX];
static unsigned nr_points;

static void measure_count(const struct curve *curve, unsigned threads)
{
	unsigned i = nr_points++;

	assert_in_range(nr_points, 1, PICK_MAX);
	for (; i && points[i - 1].threads >= threads; i--) {
		assert_int_not_equal(points[i - 1].threads, threads);
		points[i] = points[i - 1];
	}
	points[i].threads = threads;
	points[i].seconds = 1 / curve_rate(curve, threads);
}

static unsigned find_best(const struct curve *curve, unsigned max)
{
	unsigned counts[PICK_MAX], nr = pick_first(max, counts);

	nr_points = 0;
	do
		for (unsigned i = 0; i < nr; i++)
			measure_count(curve, counts[i]);
	while ((nr = pick_next(points, nr_points, counts)));
	return points[pick_best(points, nr_points)].threads;
}

static void the_best_is_found(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++) {
		for (unsigned max = 1; max <= 300; max++) {
			unsigned found = find_best(&curves[i], max);
			double rate = curve_rate(&curves[i], found);

			if (rate < 0.95 * curve_best(&curves[i], max))
				print_message("# %s, %u: %u\n", curves[i].name,
					      max, found);
			assert_true(rate >= 0.95 * curve_best(&curves[i], max));
			assert_in_range(found, 1, KT_MIN(curves[i].best, max));
		}
	}
}

static void few_are_measured(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++) {
		find_best(&curves[i], 8);
		assert_in_range(nr_points, 1, 6);
		find_best(&curves[i], 300);
		assert_in_range(nr_points, 1, 20);
		find_best(&curves[i], 4096);
		assert_in_range(nr_points, 1, 26);
	}
}

static void one_thread_is_one_measurement(void **state)
{
	assert_int_equal(find_best(&curves[0], 1), 1);
	assert_int_equal(nr_points, 1);
	assert_int_equal(find_best(&curves[0], 2), 2);
	assert_int_equal(nr_points, 2);
}

KTEST_MAIN(KTEST(the_best_is_found), KTEST(few_are_measured),
	   KTEST(one_thread_is_one_measurement))
