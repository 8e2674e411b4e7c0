/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job begins with all threads that it may have: where all of them pay it
 * loses nothing, and where fewer pay it soon has fewer.  On average over the
 * curves no job is slower than one that begins with four threads and doubles, and
 * jobs of less than a quarter of a second are faster.
 *
 * Jobs here have no ramp, as those that are short or detached.
 *
 * Simulated: no time passes.
 */
#include "ktest.h"
#include "support/curve.h"

static const unsigned maxima[] = { 2, 4, 8, 16, 64, 128 };
static const unsigned lengths[] = { 1, 3, 6, 12, 18, 25, 50, 125 };

/* Epochs of 8 ms. */
#define TENTH 13
#define QUARTER 32

static double run_job(const struct curve *curve, unsigned max, unsigned start,
		      unsigned epochs)
{
	struct simulation sim;

	simulation_begin(&sim, curve, max, start);
	simulation_job(&sim, epochs);
	if (start)
		sim.tune.phase = KT_TUNE_GROW;
	return simulation_run(&sim, epochs);
}

static void nothing_is_lost_where_all_pay(void **state)
{
	for (unsigned m = 0; m < KTEST_ARRAY_SIZE(maxima); m++)
		for (unsigned epochs = 1; epochs < TENTH; epochs++)
			assert_true(run_job(&curves[0], KT_MIN(maxima[m], 64),
					    0, epochs) > 0.999);
}

static void better_than_four_on_average(void **state)
{
	for (unsigned l = 0; l < KTEST_ARRAY_SIZE(lengths); l++) {
		for (unsigned m = 0; m < KTEST_ARRAY_SIZE(maxima); m++) {
			unsigned four = KT_MIN(4, maxima[m]);
			double all = 0, grown = 0;

			for (unsigned i = 0; i < nr_curves; i++) {
				all += run_job(&curves[i], maxima[m], 0,
					       lengths[l]);
				grown += run_job(&curves[i], maxima[m], four,
						 lengths[l]);
			}
			if (maxima[m] == 64)
				print_message("# a job of %4u ms, at most 64 "
					      "threads: %.3f of the best rate "
					      "from all, %.3f from 4\n",
					      lengths[l] * 8, all / nr_curves,
					      grown / nr_curves);
			/* The next trial may be just inside or outside. */
			assert_true(all >= grown * 0.99);
			if (maxima[m] > 4 && lengths[l] < QUARTER)
				assert_true(all > grown);
		}
	}
}

/* Of whatever many threads: a quarter of a second suffices. */
static void threads_that_do_not_pay_are_given_up(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++) {
		struct simulation sim;

		simulation_begin(&sim, &curves[i], 128, 0);
		assert_int_equal(sim.tune.threads, 128);
		simulation_run(&sim, QUARTER);
		if (simulation_run(&sim, QUARTER) < 0.9)
			print_message("# %s: %u threads\n", curves[i].name,
				      sim.tune.threads);
		assert_in_range(sim.tune.threads, 1, 2 * curves[i].best);
		assert_true(simulation_run(&sim, QUARTER) > 0.9);
	}
}

KTEST_MAIN(KTEST(nothing_is_lost_where_all_pay),
	   KTEST(better_than_four_on_average),
	   KTEST(threads_that_do_not_pay_are_given_up))
