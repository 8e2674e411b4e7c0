/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The ramp of core/tune.h: a long job of many small chunks begins with its caller alone,
 * and has more threads at each step as long as that pays.
 */
#include "core/rate.h"
#include "core/tune.h"
#include "core/tune_trial.h"

/* A ramp goes up by this factor.  A step is measured so often before it does not pay. */
#define RAMP_FACTOR 4
#define RAMP_TRIES 4
/* A job has a ramp only if it would take at least this long with threads that all pay; and
 * longer than a first step that pays in full. */
#define RAMP_LEFT_NS 12000000
#define RAMP_FAST_NS 30000000
/* Epochs from its end to a trial of more threads. */
#define HOLD_RAMPED 2

bool kt_tune_ramp(struct kt_tune *tune)
{
	if (tune->phase != KT_TUNE_HOLD || tune->known ||
	    tune->max < KT_TUNE_RAMP_THREADS || !tune->chunk ||
	    tune->units / tune->chunk / KT_TUNE_PROBE_CHUNKS < tune->max)
		return false;
	tune->phase = KT_TUNE_RAMP;
	tune->threads = 1;
	tune->ramp_rate = 0;
	tune->ramp_tries = 0;
	tune->middle = false;
	/* The caller is alone from the beginning. */
	tune->settling = false;
	return true;
}

/* The rate of one thread says nothing about the rate of all: begin anew. */
static void end_ramp(struct kt_tune *tune, unsigned threads)
{
	tune_begin_phase(tune, KT_TUNE_HOLD, KT_MIN(threads, tune->limit));
	tune->hold = threads < tune->limit ? HOLD_RAMPED : KT_TUNE_HOLD_FIRST;
	tune->base = 0;
	tune->probe_at = KT_TUNE_PROBE_AFTER * KT_TUNE_PROBE_AGAIN;
}

static void ramp_to(struct kt_tune *tune, unsigned threads)
{
	tune_begin_phase(tune, KT_TUNE_RAMP, KT_MIN(threads, tune->limit));
	tune->ramp_rate = 0;
	tune->ramp_tries = 0;
}

/* Will the job end in @ns if all threads pay?  @rate: of one */
static bool ends_within(const struct kt_tune *tune, uint64_t ns, uint64_t own,
			uint64_t rate)
{
	uint64_t left = tune->units - KT_MIN(own, tune->units);

	return left / tune->max < rate / (KT_RATE_NS / ns);
}

/* Try a count between the best one and one that was too many, or the maximum. */
static void try_middle(struct kt_tune *tune, unsigned few, unsigned many)
{
	if (few * 2 >= many) {
		end_ramp(tune, tune->base);
		return;
	}
	tune->middle = true;
	ramp_to(tune, few * 2);
}

/* The step did not pay, unless it was the middle below all threads. */
static void end_step(struct kt_tune *tune)
{
	if (tune->middle)
		end_ramp(tune, tune->base);
	else
		try_middle(tune, tune->base, tune->threads);
}

static void take_step(struct kt_tune *tune, uint64_t own)
{
	unsigned few = tune->base;
	uint64_t of_one = tune->base_rate / few;
	uint64_t of_each = tune->ramp_rate / tune->threads;
	bool fast = of_each >= of_one - of_one / 8;

	tune->base = tune->threads;
	tune->base_rate = tune->ramp_rate;
	if (fast && ends_within(tune, RAMP_FAST_NS, own, of_one))
		end_ramp(tune, tune->limit);
	else if (tune->middle)
		end_ramp(tune, tune->base);
	else if (tune->threads < tune->limit)
		ramp_to(tune, tune->threads * RAMP_FACTOR);
	else if (of_each < of_one / 2)
		try_middle(tune, few, tune->threads);
	else
		end_ramp(tune, tune->base);
}

/* A middle below what is best so far needs only be as good. */
static bool step_pays(const struct kt_tune *tune)
{
	if (tune->threads < tune->base)
		return !tune_is_worth(tune->threads, tune->ramp_rate,
				      tune->base, tune->base_rate);
	return tune_is_worth(tune->base, tune->base_rate, tune->threads,
			     tune->ramp_rate);
}

static void judge_step(struct kt_tune *tune, uint64_t own, uint64_t rate)
{
	rate = rate > UINT64_MAX / tune->threads ? UINT64_MAX
						 : rate * tune->threads;
	tune->ramp_rate = KT_MAX(tune->ramp_rate, rate);
	tune->ramp_tries++;
	if (!tune->base && ends_within(tune, RAMP_LEFT_NS, own, rate)) {
		end_ramp(tune, tune->limit);
	} else if (!tune->base) {
		tune->base = 1;
		tune->base_rate = rate;
		ramp_to(tune, RAMP_FACTOR);
	} else if (step_pays(tune)) {
		take_step(tune, own);
	} else if (tune->ramp_tries == RAMP_TRIES) {
		end_step(tune);
	}
}

/* The first chunk at a count may have begun before the threads were there. */
unsigned kt_tune_ramp_step(struct kt_tune *tune, uint64_t now_ns, uint64_t own,
			   uint64_t units)
{
	bool forward = now_ns > tune->epoch_ns && own > tune->epoch_units;
	uint64_t ns = now_ns - tune->epoch_ns;
	uint64_t done = own - tune->epoch_units;
	bool settling = tune->settling;

	if (forward && ns < KT_TUNE_RAMP_NS && tune->base)
		return tune_asked_for(tune);
	tune_begin_epoch(tune, now_ns, own);
	tune->settling = false;
	if (forward && !settling)
		judge_step(tune, own, kt_rate(done, ns));
	if (!kt_tune_ramps(tune))
		tune_begin_epoch(tune, now_ns, units);
	return tune_asked_for(tune);
}

void kt_tune_ramp_end(struct kt_tune *tune, uint64_t now_ns, uint64_t units)
{
	end_ramp(tune, tune->limit);
	tune_begin_epoch(tune, now_ns, units);
}
