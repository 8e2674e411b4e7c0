/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The curves, and the simulated job: see curve.h.
 */
#include "ktest.h"
#include "curve.h"

#define TICKS_PER_EPOCH 16
#define UNITS_PER_EPOCH 1e6

/* Some are what the founders' clients published on machines of 88 to 288
 * CPUs, as rates: the time for the job, upside down. */
const struct curve curves[] = {
	{ "linear", { { 64, 64 } }, 64 },
	{ "saturates at 8", { { 8, 8 } }, 8 },
	{ "saturates at 12", { { 12, 12 } }, 12 },
	{ "flat", { { 1, 1 } }, 1 },
	{ "falls after 16",
	  { { 16, 1 / 16.0 }, { 32, 1 / 20.0 }, { 64, 1 / 24.0 } },
	  16 },
	{ "huge pages at boot",
	  { { 8, 1 / 44.0 },
	    { 16, 1 / 22.0 },
	    { 32, 1 / 16.0 },
	    { 64, 1 / 19.0 },
	    { 128, 1 / 20.0 } },
	  32 },
	{ "pinning, contended",
	  { { 1, 1 }, { 4, 2.4 }, { 8, 3.2 }, { 16, 1.9 }, { 64, 1.2 } },
	  8 },
	{ "pinning",
	  { { 1, 1 },
	    { 2, 1.9 },
	    { 4, 3.6 },
	    { 8, 6.4 },
	    { 12, 8.6 },
	    { 16, 10.2 } },
	  16 },
	/* What two threads of one machine measured, and on. */
	{ "a cache line", { { 1, 1 }, { 2, 0.45 }, { 64, 0.3 } }, 1 },
	{ "huge pages", { { 1, 1 }, { 2, 1.43 }, { 3, 1.5 } }, 3 },
	{ "rises slowly",
	  { { 1, 1 }, { 2, 1.1 }, { 4, 1.25 }, { 8, 1.4 }, { 16, 1.6 } },
	  16 },
};

const unsigned nr_curves = KTEST_ARRAY_SIZE(curves);

double curve_rate(const struct curve *curve, unsigned threads)
{
	unsigned few = 0;
	double rate = 0;

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(curve->points); i++) {
		unsigned many = curve->points[i].threads;

		if (!many)
			break;
		if (threads <= many)
			return rate + (curve->points[i].rate - rate) *
					      (threads - few) / (many - few);
		few = many;
		rate = curve->points[i].rate;
	}
	return rate;
}

double curve_best(const struct curve *curve, unsigned max)
{
	double best = 0;

	for (unsigned i = 1; i <= max; i++)
		best = KT_MAX(best, curve_rate(curve, i));
	return best;
}

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
static double deviation(uint64_t *random)
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
		luck += sim->noise * deviation(&sim->random);
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
