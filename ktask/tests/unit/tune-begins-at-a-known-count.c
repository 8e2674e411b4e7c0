/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job whose best count is known loses nothing at its beginning, and one that
 * was told a wrong count finds the right one like any other.
 *
 * Simulated, as tune-finds-the-best-count.c.
 */
#include "ktest.h"
#include "support/curve.h"

#define SOON 64
#define SHORT 12 /* epochs, 96 ms */
#define LONG 1000

static const unsigned maxima[] = { 1, 2, 3, 8, 16, 48, 64, 96 };

/* The least count with the best rate up to @max. */
static unsigned best_count(const struct curve *curve, unsigned max)
{
	unsigned best = 1;

	for (unsigned i = 2; i <= max; i++)
		if (curve_rate(curve, i) > curve_rate(curve, best) * 1.001)
			best = i;
	return best;
}

static void begin_at(struct simulation *sim, unsigned curve, unsigned max,
		     unsigned known, unsigned job)
{
	simulation_begin(sim, &curves[curve], max, known);
	simulation_job(sim, job);
}

static void right_from_the_first_chunk(void **state)
{
	double sum_known = 0, sum_new = 0;
	unsigned nr = 0;

	for (unsigned i = 0; i < nr_curves; i++) {
		for (unsigned m = 0; m < KTEST_ARRAY_SIZE(maxima); m++) {
			unsigned best = best_count(&curves[i], maxima[m]);
			struct simulation sim;
			double got;

			begin_at(&sim, i, maxima[m], best, SHORT);
			got = simulation_run(&sim, SHORT);
			assert_true(got > 0.99);
			sum_known += got;
			begin_at(&sim, i, maxima[m], 0, SHORT);
			sum_new += simulation_run(&sim, SHORT);
			nr++;
		}
	}
	print_message("# first %d epochs: %.3f of the best rate known, %.3f "
		      "not\n",
		      SHORT, sum_known / nr, sum_new / nr);
	assert_true(sum_known > sum_new);
}

static void correct_count(unsigned curve, unsigned max, unsigned known)
{
	struct simulation sim;
	double got;

	begin_at(&sim, curve, max, known, LONG);
	simulation_run(&sim, 3 * SOON);
	got = simulation_run(&sim, SOON);
	if (got < 0.975)
		print_message("# %s, %u, from %u: %u, %.3f\n",
			      curves[curve].name, max, known, sim.tune.threads,
			      got);
	assert_true(got >= 0.975);
}

/* Coarse steps alone would pass over the peak of a steep curve. */
static void wrong_knowledge_is_corrected(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++)
		for (unsigned m = 1; m < KTEST_ARRAY_SIZE(maxima); m++)
			for (unsigned known = 1; known <= maxima[m]; known++)
				correct_count(i, maxima[m], known);
}

static void counts_out_of_range_are_brought_in(void **state)
{
	struct simulation sim;

	begin_at(&sim, 0, 8, 65536, LONG);
	assert_int_equal(sim.tune.threads, 8);
	begin_at(&sim, 0, 1, 3, LONG);
	assert_int_equal(sim.tune.threads, 1);
}

KTEST_MAIN(KTEST(right_from_the_first_chunk),
	   KTEST(wrong_knowledge_is_corrected),
	   KTEST(counts_out_of_range_are_brought_in))
