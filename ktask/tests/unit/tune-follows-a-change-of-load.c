/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job that runs steadily answers a change of load within 50 ms, comes to the
 * new best count, and follows a load that drifts; where one thread is best a
 * job that may have several soon has one.
 *
 * Simulated: no time passes.
 */
#include "ktest.h"
#include "support/curve.h"

#define SOON 64
#define TICK_NS (KT_TUNE_EPOCH_NS / 16)
#define REACT_NS 50000000

/* What a neighbour leaves of a machine of 64 CPUs. */
static const struct curve quiet = {
	"quiet", NULL, { { 32, 32 }, { 64, 33 } }, 32
};
static const struct curve beside = {
	"beside", NULL, { { 8, 8 }, { 16, 6 }, { 64, 3 } }, 8
};
/* Two CPUs, and what hinders. */
static const struct curve half = { "half", NULL, { { 1, 1 }, { 2, 0.5 } }, 1 };
static const struct curve fifth = {
	"fifth", NULL, { { 1, 1 }, { 2, 0.8 } }, 1
};
static const struct curve lock = { "lock", NULL, { { 1, 1 }, { 64, 1 } }, 1 };

/* Run on until the count changes.  Return: how long that took. */
static uint64_t ns_until_change(struct simulation *sim)
{
	uint64_t start_ns = sim->now_ns;
	unsigned changes = sim->changes;

	while (sim->changes == changes &&
	       sim->now_ns - start_ns < 100 * (uint64_t)REACT_NS)
		simulation_tick(sim);
	return sim->now_ns - start_ns;
}

/* Steady, not in a trial, and the next one far away. */
static void settle_count(struct simulation *sim)
{
	simulation_run(sim, 8 * SOON);
	while (sim->tune.phase != KT_TUNE_HOLD || sim->tune.hold < SOON)
		simulation_tick(sim);
}

static void a_neighbour_is_answered(void **state)
{
	/* At any moment of an epoch. */
	for (unsigned ticks = 0; ticks < 32; ticks++) {
		struct simulation sim;

		simulation_begin(&sim, &quiet, 64, 0);
		settle_count(&sim);
		for (unsigned i = 0; i < ticks; i++)
			simulation_tick(&sim);
		sim.curve = &beside;
		assert_true(ns_until_change(&sim) <= REACT_NS);
		simulation_run(&sim, 4 * SOON);
		assert_in_range(sim.tune.threads, 6, 12);
		assert_true(simulation_run(&sim, SOON) > 0.90);
	}
}

static void its_leaving_is_answered(void **state)
{
	for (unsigned ticks = 0; ticks < 32; ticks++) {
		struct simulation sim;

		simulation_begin(&sim, &beside, 64, 0);
		settle_count(&sim);
		for (unsigned i = 0; i < ticks; i++)
			simulation_tick(&sim);
		/* Whatever was in its way, all is twice as fast. */
		sim.speed *= 2;
		sim.curve = &quiet;
		assert_true(ns_until_change(&sim) <= REACT_NS);
		simulation_run(&sim, 2 * SOON);
		assert_true(simulation_run(&sim, SOON) > 0.90);
	}
}

/* A neighbour that comes and goes forever does not make trials useless. */
static void an_answer_may_come_again(void **state)
{
	struct simulation sim;
	double sum = 0;

	simulation_begin(&sim, &quiet, 64, 0);
	settle_count(&sim);
	for (unsigned i = 0; i < 40; i++) {
		sim.curve = i % 2 ? &quiet : &beside;
		sum += simulation_run(&sim, 2 * SOON);
	}
	assert_true(sum / 40 > 0.75);
}

/* Over two seconds there and back; the curve never stands still. */
static void drifting_load_is_followed(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++) {
		struct simulation sim;
		double sum = 0;

		simulation_begin(&sim, &curves[i], 64, 0);
		simulation_run(&sim, SOON);
		for (unsigned epoch = 0; epoch < 1000; epoch++) {
			sim.speed *= epoch % 256 < 128 ? 1.004 : 1 / 1.004;
			sum += simulation_run(&sim, 1);
		}
		if (sum / 1000 < 0.95)
			print_message("# %s: %.3f\n", curves[i].name,
				      sum / 1000);
		assert_true(sum / 1000 > 0.95);
	}
}

/* Another rate now and then is no load: few trials come of it. */
static void single_outliers_are_ignored(void **state)
{
	struct simulation sim;
	unsigned changes;

	simulation_begin(&sim, &quiet, 32, 32);
	settle_count(&sim);
	changes = sim.changes;
	for (unsigned i = 0; i < 30; i++) {
		sim.speed /= 2;
		simulation_run(&sim, 1);
		sim.speed *= 2;
		simulation_run(&sim, 1);
	}
	assert_in_range(sim.changes - changes, 0, 4);
}

static void one_thread_is_found_soon(void **state)
{
	static const struct curve *const poor[] = { &half, &fifth, &lock };
	static const unsigned maxima[] = { 2, 3, 4, 8, 64 };

	for (unsigned i = 0; i < 3 * KTEST_ARRAY_SIZE(maxima); i++) {
		struct simulation sim;

		simulation_begin(&sim, poor[i % 3], maxima[i / 3], 0);
		/* 50 ms, then all but a few trials. */
		simulation_run(&sim, 6);
		if (sim.tune.threads != 1)
			print_message("# %s, %u\n", sim.curve->name,
				      sim.tune.max);
		assert_int_equal(sim.tune.threads, 1);
		assert_true(simulation_run(&sim, 4 * SOON) > 0.95);
	}
}

KTEST_MAIN(KTEST(a_neighbour_is_answered), KTEST(its_leaving_is_answered),
	   KTEST(an_answer_may_come_again), KTEST(drifting_load_is_followed),
	   KTEST(single_outliers_are_ignored), KTEST(one_thread_is_found_soon))
