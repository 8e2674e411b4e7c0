/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tune: hill climbing on the number of threads, one epoch a step.  See tune.h;
 * tune_ramp.c has the ramp.
 *
 * A trial takes two epochs.  The first, in which threads come or go, is short and not
 * counted.  A trial of a slower count costs speed, so trials become rare: each one that
 * changes nothing doubles the time to the next.
 */
#include "core/rate.h"
#include "core/tune.h"
#include "core/tune_trial.h"

/* Epochs between trials: KT_TUNE_HOLD_FIRST (1/8 s) at first, 8 s at last. */
#define HOLD_LAST 1024
/* The longest hold while other jobs have some of the threads. */
#define HOLD_LIMITED 32
/* A rate is an outlier if its distance from the mean is more than 1 / n of the mean,
 * and more than so many times the spread.  Two in a row mean that the load changed:
 * the next trial begins 16 to 32 ms after the change. */
#define OUTLIER_PART 8
#define OUTLIER_SPREADS 4
#define OUTLIER_EPOCHS 2
/* Epochs before outliers count: at first, because the spread must be known, and
 * after a change of load whose trial did not pay. */
#define COOLDOWN_START 16
#define COOLDOWN_FIRST 4
#define COOLDOWN_LAST 1024
/* A limit that moves by at most this part of it, as 1 / n, changes no rate. */
#define LIMIT_PART 16
/* By then the threads of a trial have come or gone. */
#define SETTLE_NS 2000000
/* A trial of more threads ends once their rate has been lower by this part, as 1 / n,
 * for so long. */
#define WORSE_PART 4
#define WORSE_NS 2000000
/* Steps are a quarter of the threads, then an eighth, then a sixteenth. */
#define FINEST 2

void kt_tune_begin(struct kt_tune *tune, unsigned max, uint64_t units,
		   uint64_t now_ns)
{
	tune->max = KT_MAX(max, 1);
	tune->limit = tune->max;
	tune->wish = tune->max;
	tune->units = units;
	tune->chunk = 0;
	tune->threads = tune->max;
	tune->base = 0;
	tune->base_rate = 0;
	tune->least = 0;
	tune->least_rate = 0;
	tune->spread = 0;
	tune->outliers = 0;
	tune->cooldown = COOLDOWN_START;
	tune->cooldown_next = COOLDOWN_FIRST;
	tune->epochs = 0;
	tune->probe_at = KT_TUNE_PROBE_AFTER;
	tune->phase = KT_TUNE_HOLD;
	tune->descending = false;
	tune->hold = KT_TUNE_HOLD_FIRST;
	tune->hold_next = KT_TUNE_HOLD_FIRST;
	tune->fine = 0;
	tune->epoch_ns = now_ns;
	tune->epoch_units = 0;
	tune->settling = true;
	tune->ramp_rate = 0;
	tune->ramp_tries = 0;
	tune->known = false;
	tune->middle = false;
}

void kt_tune_chunk(struct kt_tune *tune, uint64_t units)
{
	tune->chunk = units;
}

void kt_tune_known(struct kt_tune *tune, unsigned threads)
{
	tune->threads = KT_MAX(KT_MIN(threads, tune->max), 1);
	tune->phase = KT_TUNE_HOLD;
	tune->known = true;
}

static void set_threads(struct kt_tune *tune, unsigned threads)
{
	tune->settling = tune->settling || threads != tune->threads;
	tune->threads = threads;
}

static void hold_count(struct kt_tune *tune, unsigned epochs)
{
	/* A job that asks for fewer is not told when others leave more. */
	if (tune->limit < tune->max && tune->threads < tune->limit)
		epochs = KT_MIN(epochs, HOLD_LIMITED);
	tune->phase = KT_TUNE_HOLD;
	tune->descending = false;
	tune->hold = epochs;
	tune->hold_next = KT_MIN(epochs * 2, HOLD_LAST);
}

static unsigned step_from(const struct kt_tune *tune, unsigned threads)
{
	return KT_MAX(threads >> (2 + tune->fine), 1);
}

/* Return: false if there are no finer steps. */
static bool use_finer_steps(struct kt_tune *tune)
{
	if (tune->fine == FINEST || !(tune->threads >> (3 + tune->fine)))
		return false;
	tune->fine++;
	return true;
}

/* Probe half of the threads, then half of these, as long as fewer do as well. */
static void begin_probes(struct kt_tune *tune)
{
	tune->probe_at =
		KT_MAX(tune->epochs, tune->probe_at) * KT_TUNE_PROBE_AGAIN;
	tune->least = tune->base;
	tune->least_rate = tune->base_rate;
	tune_begin_phase(tune, KT_TUNE_PROBE, tune->base / 2);
}

/* Is enough left of the job?  A count found near the end is of no use.
 * Compares rates: no division of times, and no overflow. */
static bool worth_probing(const struct kt_tune *tune)
{
	uint64_t done = KT_MIN(tune->epoch_units, tune->units);
	uint64_t left = tune->units - done;
	uint64_t least =
		tune->base_rate >> (KT_RATE_SHIFT - KT_TUNE_PROBE_LEFT);

	return tune->base > 1 && left >= least &&
	       left / KT_TUNE_PROBE_CHUNKS / tune->base >= tune->chunk;
}

static void grow_count(struct kt_tune *tune, uint64_t rate)
{
	if (tune->base &&
	    !tune_is_worth(tune->base, tune->base_rate, tune->threads, rate)) {
		set_threads(tune, tune->base);
		hold_count(tune, KT_TUNE_HOLD_FIRST);
		return;
	}
	tune->base = tune->threads;
	tune->base_rate = rate;
	if (tune->threads == tune->limit)
		hold_count(tune, KT_TUNE_HOLD_FIRST);
	else
		set_threads(tune, KT_MIN(tune->threads * 2, tune->limit));
}

/* Averages over about 4 and 8 epochs, so that trials do not fail from noise. */
static void update_rate(struct kt_tune *tune, uint64_t rate)
{
	uint64_t off = kt_distance(rate, tune->base_rate);

	if (tune->base == tune->threads) {
		tune->spread = tune->spread - tune->spread / 8 + off / 8;
		rate = tune->base_rate - tune->base_rate / 4 + rate / 4;
	}
	tune->base = tune->threads;
	tune->base_rate = rate;
}

/* Has something else changed the rate?  Until that is clear an outlier does not
 * enter the averages. */
static bool is_outlier(struct kt_tune *tune, uint64_t rate)
{
	uint64_t off = kt_distance(rate, tune->base_rate);

	if (tune->cooldown)
		tune->cooldown--;
	if (tune->cooldown || tune->base != tune->threads ||
	    off <= tune->base_rate / OUTLIER_PART ||
	    off / OUTLIER_SPREADS <= tune->spread) {
		tune->outliers = 0;
		return false;
	}
	tune->outliers++;
	return true;
}

static void try_up(struct kt_tune *tune)
{
	unsigned more = tune->threads + step_from(tune, tune->threads);

	tune->phase = KT_TUNE_UP;
	set_threads(tune, KT_MIN(more, tune->limit));
}

static void try_down(struct kt_tune *tune)
{
	unsigned fewer = tune->threads - step_from(tune, tune->threads);

	tune->phase = KT_TUNE_DOWN;
	set_threads(tune, KT_MAX(fewer, 1));
}

/* Slower: other threads use the CPUs that more threads would need.  Faster: they
 * have left. */
static void answer_change(struct kt_tune *tune, uint64_t rate)
{
	bool slower = rate < tune->base_rate;

	tune->outliers = 0;
	tune->cooldown = tune->cooldown_next;
	tune->cooldown_next = KT_MIN(tune->cooldown_next * 2, COOLDOWN_LAST);
	tune->base_rate = rate;
	tune->hold_next = KT_TUNE_HOLD_FIRST;
	tune->fine = 0;
	if (!slower && tune->threads < tune->limit)
		try_up(tune);
	else if (slower && tune->threads > 2)
		try_down(tune);
	else if (slower && tune->threads == 2 && worth_probing(tune))
		begin_probes(tune);
}

static bool time_for_probe(struct kt_tune *tune)
{
	tune->epochs++;
	return tune->epochs >= tune->probe_at && worth_probing(tune) &&
	       tune->spread <= tune->base_rate / OUTLIER_PART;
}

/* With two threads a trial of one costs half of the speed for two epochs.  It
 * begins only if the hold has already grown. */
static void count_held_epoch(struct kt_tune *tune, uint64_t rate)
{
	if (is_outlier(tune, rate)) {
		if (tune->outliers == OUTLIER_EPOCHS)
			answer_change(tune, rate);
		return;
	}
	update_rate(tune, rate);
	if (time_for_probe(tune)) {
		begin_probes(tune);
		return;
	}
	if (tune->hold && --tune->hold)
		return;
	if (tune->threads < tune->limit)
		try_up(tune);
	else if (tune->threads > 2 ||
		 (tune->threads > 1 &&
		  tune->hold_next >= 16 * KT_TUNE_HOLD_FIRST))
		try_down(tune);
	else
		hold_count(tune, tune->hold_next);
}

/* A whole trial then decides about the least count that did as well. */
static void end_probe(struct kt_tune *tune, uint64_t rate)
{
	if (!tune_is_worth(tune->threads, rate, tune->least,
			   tune->least_rate)) {
		tune->least = tune->threads;
		tune->least_rate = rate;
		if (tune->threads > 1) {
			tune_begin_phase(tune, KT_TUNE_PROBE,
					 tune->threads / 2);
			return;
		}
	}
	tune_begin_phase(tune,
			 tune->least < tune->base ? KT_TUNE_DOWN : KT_TUNE_HOLD,
			 tune->least);
}

/* A step that pays may pay again: go on at once, with coarse steps by doubling. */
static void paid_up(struct kt_tune *tune, uint64_t rate)
{
	tune->cooldown_next = COOLDOWN_FIRST;
	tune->base = tune->threads;
	tune->base_rate = rate;
	tune->hold_next = KT_TUNE_HOLD_FIRST;
	if (tune->threads == tune->limit) {
		hold_count(tune, KT_TUNE_HOLD_FIRST);
	} else if (tune->fine) {
		try_up(tune);
	} else {
		tune->phase = KT_TUNE_GROW;
		set_threads(tune, KT_MIN(tune->threads * 2, tune->limit));
	}
}

/* A fine step that brings less than the rate varies by chance is none. */
static void tried_up(struct kt_tune *tune, uint64_t rate)
{
	if (tune_is_worth(tune->base, tune->base_rate, tune->threads, rate) &&
	    rate - tune->base_rate >= tune->spread / 2) {
		paid_up(tune, rate);
		return;
	}
	/* It does not pay: try fewer next, but at least one. */
	set_threads(tune, tune->base);
	if (tune->base == 1)
		hold_count(tune, tune->hold_next);
	else
		try_down(tune);
}

/* The same downwards, one step at a time: there is more to lose.  A step too far
 * behind one that did as well is followed by a finer one at once. */
static void tried_down(struct kt_tune *tune, uint64_t rate)
{
	if (tune_is_worth(tune->threads, rate, tune->base, tune->base_rate)) {
		bool finer;

		set_threads(tune, tune->base);
		finer = use_finer_steps(tune);
		if (finer && tune->descending)
			try_down(tune);
		else
			hold_count(tune, finer ? KT_TUNE_HOLD_FIRST
					       : tune->hold_next);
		return;
	}
	tune->base = tune->threads;
	tune->base_rate = rate;
	tune->hold_next = KT_TUNE_HOLD_FIRST;
	tune->cooldown_next = COOLDOWN_FIRST;
	tune->descending = true;
	if (tune->threads == 1)
		hold_count(tune, KT_TUNE_HOLD_FIRST);
	else
		try_down(tune);
}

/* ---- what can be had ---- */

/* A count that was at the limit stays there. */
static void follow_limit(const struct kt_tune *tune, unsigned *count,
			 unsigned limit)
{
	if (*count == tune->limit || *count > limit)
		*count = limit;
}

static void move_limit(struct kt_tune *tune, unsigned limit)
{
	follow_limit(tune, &tune->base, limit);
	follow_limit(tune, &tune->least, limit);
	follow_limit(tune, &tune->threads, limit);
	tune->limit = limit;
}

/* The rate of the former count says nothing about the new one.  So take all threads that
 * are allowed, as at the beginning.  The alternative, a trial of the new threads, did
 * worse: the last of 20 jobs that share 819 permits ended a seventh later. */
static void begin_again(struct kt_tune *tune, unsigned limit)
{
	tune->settling = true;
	tune->outliers = 0;
	tune->fine = 0;
	tune->threads = KT_MIN(tune->wish, limit);
	tune->limit = limit;
	tune->base = 0;
	hold_count(tune, KT_TUNE_HOLD_FIRST);
}

void kt_tune_limit(struct kt_tune *tune, unsigned had, bool all)
{
	unsigned limit = all ? tune->max : KT_MAX(had, 1);

	/* Getting all of a count below the limit says nothing about the limit. */
	if (limit == tune->limit || (all && tune->threads < tune->limit))
		return;
	/* A step of a ramp asks for less than what may pay. */
	if (tune->phase != KT_TUNE_RAMP)
		tune->wish = tune_asked_for(tune);
	if (tune->phase == KT_TUNE_RAMP)
		begin_again(tune, limit);
	else if (kt_distance(limit, tune->limit) <= tune->limit / LIMIT_PART)
		move_limit(tune, limit);
	else
		begin_again(tune, limit);
	if (all)
		tune->wish = tune->max;
}

/* ---- epochs ---- */

static uint64_t epoch_ns(const struct kt_tune *tune)
{
	if (tune->phase == KT_TUNE_PROBE)
		return KT_TUNE_PROBE_NS;
	if (tune->settling && tune->phase != KT_TUNE_HOLD)
		return SETTLE_NS;
	return KT_TUNE_EPOCH_NS;
}

/* Does a trial of more threads cost a large part of the rate? */
static bool is_much_worse(const struct kt_tune *tune, uint64_t ns,
			  uint64_t units)
{
	return tune->phase == KT_TUNE_UP && !tune->settling && ns >= WORSE_NS &&
	       kt_rate(units, ns) <
		       tune->base_rate - tune->base_rate / WORSE_PART;
}

static void end_epoch(struct kt_tune *tune, uint64_t rate)
{
	switch (tune->phase) {
	case KT_TUNE_GROW:
		grow_count(tune, rate);
		break;
	case KT_TUNE_HOLD:
		count_held_epoch(tune, rate);
		break;
	case KT_TUNE_UP:
		tried_up(tune, rate);
		break;
	case KT_TUNE_DOWN:
		tried_down(tune, rate);
		break;
	case KT_TUNE_PROBE:
		end_probe(tune, rate);
		break;
	case KT_TUNE_RAMP:
		break;
	}
}

unsigned kt_tune_step(struct kt_tune *tune, uint64_t now_ns, uint64_t units)
{
	bool forward = now_ns >= tune->epoch_ns && units >= tune->epoch_units;
	uint64_t ns = now_ns - tune->epoch_ns;
	uint64_t done = units - tune->epoch_units;
	bool settling = tune->settling;

	/* An epoch in which no chunk ended goes on. */
	if (forward &&
	    (!done || (ns < epoch_ns(tune) && !is_much_worse(tune, ns, done))))
		return tune_asked_for(tune);
	tune_begin_epoch(tune, now_ns, units);
	if (forward)
		tune->settling = false;
	if (forward && !settling)
		end_epoch(tune, kt_rate(done, ns));
	return tune_asked_for(tune);
}
