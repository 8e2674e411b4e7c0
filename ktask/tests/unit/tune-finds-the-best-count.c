/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whatever the curve of rate over threads, and wherever it begins, a job soon
 * runs within 5 % of the best rate, with not many more threads than that
 * needs, and stays there; with noise of 3 % within 10 %.
 *
 * Simulated: no time passes.  8 ms an epoch: 64 epochs are half a second.
 */
#include "ktest.h"
#include "support/curve.h"

#define SOON 64

static const unsigned maxima[] = { 1, 2, 3, 4, 6, 8, 16, 64, 128 };
static const unsigned starts[] = { 0, 1, 2, 16, 64 };

#define NR_CASES \
	(nr_curves * KTEST_ARRAY_SIZE(maxima) * KTEST_ARRAY_SIZE(starts))

/* There is one thread, in which the thread sanitizer finds nothing; it is slow. */
#define STEP (KTEST_TSAN ? 7 : 1)

static void begin_case(struct simulation *sim, unsigned i)
{
	unsigned max = maxima[i / nr_curves % KTEST_ARRAY_SIZE(maxima)];
	unsigned start = starts[i / nr_curves / KTEST_ARRAY_SIZE(maxima)];

	simulation_begin(sim, &curves[i % nr_curves], max, start);
}

static void say_rate(const struct simulation *sim, double got)
{
	print_message("# %s, at most %u: %u threads, %u changes, %.3f\n",
		      sim->curve->name, sim->tune.max, sim->tune.threads,
		      sim->changes, got);
}

static void check_rate(const struct simulation *sim, double got, double least)
{
	if (got < least)
		say_rate(sim, got);
	assert_true(got >= least);
}

static void found_soon_without_noise(void **state)
{
	for (unsigned i = 0; i < NR_CASES; i += STEP) {
		struct simulation sim;

		begin_case(&sim, i);
		simulation_run(&sim, SOON);
		check_rate(&sim, simulation_run(&sim, SOON), 0.95);
	}
}

static void no_more_threads_than_useful(void **state)
{
	for (unsigned i = 0; i < NR_CASES; i += STEP) {
		struct simulation sim;
		unsigned best;

		begin_case(&sim, i);
		simulation_run(&sim, 4 * SOON);
		best = KT_MIN(sim.curve->best, sim.tune.max);
		if (sim.tune.threads > best + best / 3 + 1)
			say_rate(&sim, 0);
		assert_in_range(sim.tune.threads, 1, best + best / 3 + 1);
	}
}

/* Trials become rare: of the second thousand epochs few are changes. */
static void does_not_swing_for_ever(void **state)
{
	for (unsigned i = 0; i < NR_CASES; i += STEP) {
		struct simulation sim;
		unsigned changes;

		begin_case(&sim, i);
		simulation_run(&sim, 1000);
		changes = sim.changes;
		check_rate(&sim, simulation_run(&sim, 1000), 0.98);
		assert_in_range(sim.changes - changes, 0, 20);
	}
}

/* Single noisy runs may go astray for a while; all together must not. */
static void noise_does_little_harm(void **state)
{
	uint64_t random = ktest_seed();
	double sum = 0;
	unsigned nr = 0;

	for (unsigned i = 0; i < NR_CASES; i += STEP) {
		struct simulation sim;
		double got;

		begin_case(&sim, i);
		sim.noise = 0.03;
		sim.random = ktest_random(&random);
		simulation_run(&sim, SOON);
		got = simulation_run(&sim, 1000);
		check_rate(&sim, got, 0.60);
		sum += got;
		nr++;
	}
	assert_true(sum / nr > 0.97);
}

/* Half of the machine is taken away, and given back. */
static void load_steps_are_survived(void **state)
{
	for (unsigned i = 0; i < NR_CASES; i += STEP) {
		for (unsigned when = 1; when < 40; when += 3) {
			struct simulation sim;

			begin_case(&sim, i);
			simulation_run(&sim, when);
			sim.speed /= 2;
			simulation_run(&sim, 2 * SOON);
			check_rate(&sim, simulation_run(&sim, SOON), 0.92);
			sim.speed *= 2;
			simulation_run(&sim, 2 * SOON);
			check_rate(&sim, simulation_run(&sim, SOON), 0.92);
		}
	}
}

/* The best count itself moves: others came, and went. */
static void moving_optimum_is_followed(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++) {
		for (unsigned j = 0; j < nr_curves; j++) {
			struct simulation sim;

			simulation_begin(&sim, &curves[i], 64, 0);
			simulation_run(&sim, 2 * SOON);
			sim.curve = &curves[j];
			simulation_run(&sim, 3 * SOON);
			check_rate(&sim, simulation_run(&sim, SOON), 0.90);
		}
	}
}

/*
 * Of two threads one is half of the speed: there are few probes of it, and a
 * whole trial only when the job has run for long.
 */
static void second_thread_is_doubted_late(void **state)
{
	for (unsigned i = 0; i < nr_curves; i++) {
		struct simulation sim;

		if (curves[i].best < 2)
			continue;
		simulation_begin(&sim, &curves[i], 2, 2);
		simulation_run(&sim, 200);
		assert_in_range(sim.changes, 2, 6);
		simulation_run(&sim, 100);
		assert_in_range(sim.changes, 3, 14);
		assert_int_equal(sim.tune.threads, 2);
	}
}

/* Nothing in a job of a tenth of a second, and little in a longer one. */
static void doubt_costs_little(void **state)
{
	for (unsigned job = 1; job < 200; job++) {
		for (unsigned max = 2; max <= 64; max *= 2) {
			struct simulation sim;

			simulation_begin(&sim, &curves[0], max, max);
			simulation_job(&sim, job);
			check_rate(&sim, simulation_run(&sim, KT_MIN(job, 16)),
				   job <= 12 ? 0.999 : 0.98);
		}
	}
}

/* What is found near the end is of no use to the job. */
static void two_threads_are_not_doubted_near_the_end(void **state)
{
	for (unsigned job = 1; job < 200; job++) {
		struct simulation sim;

		simulation_begin(&sim, &curves[0], 2, 0);
		simulation_job(&sim, job);
		check_rate(&sim, simulation_run(&sim, job),
			   job <= 19 ? 0.999 : 0.99);
	}
}

/* The job of a quarter of a second, in @chunks. */
static unsigned changes_with(uint64_t chunks)
{
	struct simulation sim;

	simulation_begin(&sim, &curves[0], 2, 2);
	simulation_job(&sim, 32);
	kt_tune_chunk(&sim.tune, chunks ? sim.tune.units / chunks : 0);
	simulation_run(&sim, 32);
	return sim.changes;
}

/* One thread cannot be seen for less than a chunk. */
static void long_chunks_are_not_doubted(void **state)
{
	assert_int_equal(changes_with(2), 0);
	assert_int_equal(changes_with(64), 0);
	assert_int_equal(changes_with(255), 0);
	assert_true(changes_with(1000) > 0);
	assert_true(changes_with(0) > 0);
}

KTEST_MAIN(KTEST(found_soon_without_noise), KTEST(no_more_threads_than_useful),
	   KTEST(does_not_swing_for_ever), KTEST(noise_does_little_harm),
	   KTEST(load_steps_are_survived), KTEST(moving_optimum_is_followed),
	   KTEST(second_thread_is_doubted_late), KTEST(doubt_costs_little),
	   KTEST(two_threads_are_not_doubted_near_the_end),
	   KTEST(long_chunks_are_not_doubted))
