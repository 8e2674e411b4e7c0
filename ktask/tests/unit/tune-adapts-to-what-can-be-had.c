/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job that has fewer threads than it asks for finds how many of these pay, as
 * others do, asks for all as long as all of these pay, and takes what is given
 * back later.
 *
 * Simulated: no time passes.
 */
#include "ktest.h"
#include "support/curve.h"

#define SOON 64
#define MAX 64

static const unsigned limits[] = { 1, 2, 3, 5, 9, 20, 33, 52, 63 };

static void begin_limited(struct simulation *sim, const struct curve *curve,
			  unsigned limit)
{
	simulation_begin(sim, curve, MAX, 0);
	sim->limit = limit;
}

static void check_rate(const struct simulation *sim, double got, double least)
{
	if (got < least)
		print_message("# %s, at most %u: %u threads, %.3f\n",
			      sim->curve->name, sim->limit,
			      simulation_threads(sim), got);
	assert_true(got >= least);
}

static void fewer_pay_is_found_soon(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++) {
		for (unsigned j = 0; j < KTEST_ARRAY_SIZE(limits); j++) {
			struct simulation sim;

			begin_limited(&sim, &curves[i], limits[j]);
			simulation_run(&sim, SOON);
			check_rate(&sim, simulation_run(&sim, SOON), 0.95);
		}
	}
}

/* Else its share would fall to what it has, and stay there. */
static void all_are_asked_for_while_these_pay(void **state)
{
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(limits); i++) {
		struct simulation sim;

		begin_limited(&sim, &curves[0], limits[i]);
		simulation_run(&sim, 4 * SOON);
		assert_int_equal(sim.asked, MAX);
	}
}

static void fewer_are_asked_for_where_these_do_not(void **state)
{
	struct simulation sim;

	begin_limited(&sim, &curves[2], 52);
	simulation_run(&sim, 4 * SOON);
	assert_in_range(sim.asked, 12, 17);
}

static void what_is_given_back_is_taken(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++) {
		for (unsigned j = 0; j < KTEST_ARRAY_SIZE(limits); j++) {
			struct simulation sim;

			begin_limited(&sim, &curves[i], limits[j]);
			simulation_run(&sim, 2 * SOON);
			sim.limit = 0;
			simulation_run(&sim, 3 * SOON);
			check_rate(&sim, simulation_run(&sim, SOON), 0.90);
		}
	}
}

/* Permits that do not divide go round: the count is never quite steady. */
static void turns_are_no_change(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++) {
		struct simulation sim;
		double sum = 0;

		begin_limited(&sim, &curves[i], 40);
		simulation_run(&sim, SOON);
		for (unsigned turn = 0; turn < SOON; turn++) {
			sim.limit = 40 + turn % 2;
			sum += simulation_run(&sim, 1);
		}
		check_rate(&sim, sum / SOON, 0.95);
	}
}

/* A helper that comes and goes is nothing to learn from. */
static void one_that_comes_and_goes_is_used(void **state)
{
	struct simulation sim;
	double sum = 0;

	simulation_begin(&sim, &curves[0], 2, 0);
	for (unsigned turn = 0; turn < SOON; turn++) {
		sim.limit = 1 + turn % 2;
		sum += simulation_run(&sim, 1);
	}
	check_rate(&sim, sum / SOON, 0.95);
}

KTEST_MAIN(KTEST(fewer_pay_is_found_soon),
	   KTEST(all_are_asked_for_while_these_pay),
	   KTEST(fewer_are_asked_for_where_these_do_not),
	   KTEST(what_is_given_back_is_taken), KTEST(turns_are_no_change),
	   KTEST(one_that_comes_and_goes_is_used))
