/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job as core/tune.c sees it: a rate that depends on the number of threads.
 */
#ifndef UNIT_CURVE_H
#define UNIT_CURVE_H

#include "core/tune.h"
#include "sim/thread_curves.h"

struct simulation {
	struct kt_tune tune;
	const struct curve *curve;
	double speed; /* of the machine, times the curve's rate */
	double noise; /* standard deviation, as a part of the rate */
	uint64_t random;
	uint64_t now_ns;
	double units;
	unsigned changes; /* of the number of threads */
	unsigned asked; /* threads, by kt_tune_step() */
	unsigned limit; /* others have the rest; 0: nobody has */
};

/* @known: begin with this count; 0: with all */
void simulation_begin(struct simulation *sim, const struct curve *curve,
		      unsigned max, unsigned known);

/* The job is one of @nr epochs at the best rate; until then it has no end. */
void simulation_job(struct simulation *sim, unsigned nr);

/* One epoch; returns the rate that the threads in it had, noise aside. */
double simulation_epoch(struct simulation *sim);

/* A sixteenth of an epoch, without noise. */
void simulation_tick(struct simulation *sim);

/* Threads that the job has. */
unsigned simulation_threads(const struct simulation *sim);

/* @nr epochs; returns the mean rate as a part of the best one, within the limit
 * that there is at the end. */
double simulation_run(struct simulation *sim, unsigned nr);

#endif /* UNIT_CURVE_H */
