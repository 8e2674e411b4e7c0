/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of core/tune.h share: when a trial pays, and how an epoch begins.
 * tune.c has the trials of a job that runs, tune_ramp.c those that begin one.
 */
#ifndef KTASK_CORE_TUNE_TRIAL_H
#define KTASK_CORE_TUNE_TRIAL_H

#include "core/tune.h"

/* Twice as many threads must bring this part of the rate, as 1 / n. */
#define KT_TUNE_GAIN_NEEDED 20
/* Epochs from the beginning, or from a change, to the first trial: 1/8 s. */
#define KT_TUNE_HOLD_FIRST 16

/* Did going from @few threads at @rate_few to @many at @rate_many pay? */
static inline bool tune_is_worth(unsigned few, uint64_t rate_few, unsigned many,
				 uint64_t rate_many)
{
	uint64_t doubling = rate_few / KT_TUNE_GAIN_NEEDED, needed = 0;

	for (; many / 2 >= few; few *= 2)
		needed += doubling;
	needed += doubling / few * (many - few);
	return rate_many > rate_few && rate_many - rate_few >= needed;
}

/* Whatever the count, the next epoch is not counted. */
static inline void tune_begin_phase(struct kt_tune *tune,
				    enum kt_tune_phase phase, unsigned threads)
{
	tune->phase = phase;
	tune->settling = true;
	tune->threads = threads;
}

static inline void tune_begin_epoch(struct kt_tune *tune, uint64_t now_ns,
				    uint64_t units)
{
	tune->epoch_ns = now_ns;
	tune->epoch_units = units;
}

/* At the limit, also what others hold now. */
static inline unsigned tune_asked_for(const struct kt_tune *tune)
{
	return tune->threads == tune->limit ? tune->wish : tune->threads;
}

#endif /* KTASK_CORE_TUNE_TRIAL_H */
