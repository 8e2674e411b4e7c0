/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The simulated job: see curve.h.
 */
#include "ktest.h"
#include "curve.h"

#define TICKS_PER_EPOCH 16
#define UNITS_PER_EPOCH 1e6

void simulation_begin(struct simulation *sim, const struct curve *curve,
		      unsigned max, unsigned known)
{
	*sim = (struct simulation){ .curve = curve };
	sim->speed = UNITS_PER_EPOCH / curve_rate(curve, 1);
	kt_tune_begin(&sim->tune, max, UINT64_MAX, 0);
	if (known)
		kt_tune_known(&sim->tune, known);
	sim->asked = sim->tune.threads;
}

void simulation_job(struct simulation *sim, unsigned nr)
{
	sim->tune.units = (uint64_t)(curve_best(sim->curve, sim->tune.max) *
				     sim->speed * nr);
}

/* About normal, with a standard deviation of 1. */
static double draw_deviation(uint64_t *random)
{
	double sum = -6;

	for (unsigned i = 0; i < 12; i++)
		sum += (double)ktest_random_below(random, 1 << 20) / (1 << 20);
	return sum;
}

unsigned simulation_threads(const struct simulation *sim)
{
	return sim->limit ? KT_MIN(sim->asked, sim->limit) : sim->asked;
}

/* Half a millisecond, as often as a caller looks up. */
static double tick_with(struct simulation *sim, double luck)
{
	unsigned threads = simulation_threads(sim), wanted;
	double rate = curve_rate(sim->curve, threads);

	sim->now_ns += KT_TUNE_EPOCH_NS / TICKS_PER_EPOCH;
	sim->units += rate * sim->speed * luck / TICKS_PER_EPOCH;
	wanted = kt_tune_step(&sim->tune, sim->now_ns, (uint64_t)sim->units);
	assert_in_range(wanted, 1, sim->tune.max);
	sim->asked = wanted;
	kt_tune_limit(&sim->tune, simulation_threads(sim),
		      simulation_threads(sim) == wanted);
	sim->changes += simulation_threads(sim) != threads;
	return rate;
}

double simulation_epoch(struct simulation *sim)
{
	double luck = 1, rate = 0;

	if (sim->noise > 0)
		luck += sim->noise * draw_deviation(&sim->random);
	for (unsigned i = 0; i < TICKS_PER_EPOCH; i++)
		rate += tick_with(sim, luck) / TICKS_PER_EPOCH;
	return rate;
}

void simulation_tick(struct simulation *sim)
{
	tick_with(sim, 1);
}

double simulation_run(struct simulation *sim, unsigned nr)
{
	unsigned most = sim->tune.max;
	double sum = 0;

	for (unsigned i = 0; i < nr; i++)
		sum += simulation_epoch(sim);
	if (sim->limit)
		most = KT_MIN(most, sim->limit);
	return sum / nr / curve_best(sim->curve, most);
}
