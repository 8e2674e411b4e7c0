/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Time that jumps or goes back, progress that stops or seems to go back, and
 * units of any length: the count stays between 1 and the maximum, and soon is
 * right again.
 */
#include "ktest.h"
#include "support/curve.h"

#define SOON 64

static const struct curve *linear = &curves[0];

static void settle_count(struct simulation *sim)
{
	simulation_begin(sim, linear, 64, 0);
	simulation_run(sim, SOON);
	/* Not in the middle of a trial. */
	for (unsigned i = 0; i < SOON && sim->tune.phase != KT_TUNE_HOLD; i++)
		simulation_run(sim, 1);
	assert_int_equal(sim->tune.threads, 64);
}

static void clock_goes_back(void **state)
{
	for (unsigned when = 0; when < 2 * SOON; when++) {
		struct simulation sim;

		simulation_begin(&sim, linear, 64, 0);
		sim.now_ns = 1ull << 40;
		kt_tune_begin(&sim.tune, 64, UINT64_MAX, sim.now_ns);
		if (when)
			simulation_run(&sim, when);
		sim.now_ns -= 1ull << 39;
		simulation_run(&sim, SOON);
		assert_true(simulation_run(&sim, SOON) > 0.95);
	}
}

static void clock_jumps_ahead(void **state)
{
	static const uint64_t jumps_ns[] = { 1000000000, 1ull << 50,
					     1ull << 62 };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(jumps_ns); i++) {
		struct simulation sim;

		settle_count(&sim);
		sim.now_ns += jumps_ns[i];
		simulation_run(&sim, SOON);
		assert_true(simulation_run(&sim, SOON) > 0.95);
	}
}

/* As long as nothing ends there is nothing to learn. */
static void stalls_change_nothing(void **state)
{
	struct simulation sim;

	settle_count(&sim);
	for (unsigned i = 0; i < 100000; i++) {
		sim.now_ns += KT_TUNE_EPOCH_NS;
		assert_int_equal(kt_tune_step(&sim.tune, sim.now_ns,
					      (uint64_t)sim.units),
				 64);
	}
	simulation_run(&sim, SOON);
	assert_true(simulation_run(&sim, SOON) > 0.95);
}

static void progress_goes_back(void **state)
{
	struct simulation sim;

	settle_count(&sim);
	sim.units = 0;
	simulation_run(&sim, SOON);
	assert_true(simulation_run(&sim, SOON) > 0.95);
}

/* The same curve in units of any length finds the same count. */
static void length_of_units_does_not_matter(void **state)
{
	static const double units_per_hour[] = { 1, 60, 3600, 1e9, 1e12, 1e16 };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(units_per_hour); i++) {
		uint64_t now_ns = 0;
		struct kt_tune tune;
		double units = 0;

		kt_tune_begin(&tune, 64, UINT64_MAX, now_ns);
		for (unsigned step = 0; step < 200; step++) {
			/* A minimum of four units of each thread. */
			double hours = KT_MAX(4 / units_per_hour[i], 1e-6);

			now_ns += (uint64_t)(hours * 3600e9);
			units += hours * units_per_hour[i] * tune.threads;
			kt_tune_step(&tune, now_ns, (uint64_t)units);
		}
		assert_in_range(tune.threads, 48, 64);
	}
}

static void extremes_stay_in_bounds(void **state)
{
	uint64_t random = ktest_seed();

	for (unsigned i = 0; i < 2000; i++) {
		unsigned max = (unsigned)ktest_random(&random) >>
			       ktest_random_below(&random, 32);
		unsigned start = (unsigned)ktest_random(&random) >>
				 ktest_random_below(&random, 32);
		struct kt_tune tune;

		kt_tune_begin(&tune, max, UINT64_MAX, ktest_random(&random));
		kt_tune_known(&tune, start);
		for (unsigned step = 0; step < 200; step++) {
			unsigned shift =
				(unsigned)ktest_random_below(&random, 64);
			unsigned threads = kt_tune_step(
				&tune, ktest_random(&random) >> shift,
				ktest_random(&random) >> shift);

			assert_true(threads >= 1);
			assert_true(threads <= KT_MAX(max, 1));
		}
	}
}

KTEST_MAIN(KTEST(clock_goes_back), KTEST(clock_jumps_ahead),
	   KTEST(stalls_change_nothing), KTEST(progress_goes_back),
	   KTEST(length_of_units_does_not_matter),
	   KTEST(extremes_stay_in_bounds))
