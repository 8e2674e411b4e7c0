/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tune: hill climbing on the number of threads, one epoch a step.
 *
 * A trial takes two epochs.  The first, in which threads come or go, is short and not
 * counted.  A trial of a slower count costs speed, so trials become rare: each one that
 * changes nothing doubles the time to the next.
 */
/* length: one state machine; its phases compare rates in one way */
#include "core/rate.h"
#include "core/tune.h"

/* Twice as many threads must bring this part of the rate, as 1 / n. */
#define GAIN_NEEDED 20
/* Epochs between trials: 1/8 s at first, 8 s at last. */
#define HOLD_FIRST 16
#define HOLD_LAST 1024
/* And at most where others leave fewer threads than there are. */
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
/* Threads that come or go in a trial have done so by then. */
#define SETTLE_NS 2000000
/* A trial of more threads ends once their rate has been lower by this part, as 1 / n,
 * for so long. */
#define WORSE_PART 4
#define WORSE_NS 2000000
/* A ramp goes up by this factor.  A step is measured so often before it does not pay. */
#define RAMP_FACTOR 4
#define RAMP_TRIES 4
/* What a job must take at least, were all threads to pay, to have a ramp; and more than
 * a first step that pays in full. */
#define RAMP_LEFT_NS 12000000
#define RAMP_FAST_NS 30000000
/* Epochs from its end to a trial of more threads. */
#define HOLD_RAMPED 2
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
	tune->hold = HOLD_FIRST;
	tune->hold_next = HOLD_FIRST;
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

/* Did going from @few threads at @rate_few to @many at @rate_many pay? */
static bool is_worth(unsigned few, uint64_t rate_few, unsigned many,
		     uint64_t rate_many)
{
	uint64_t doubling = rate_few / GAIN_NEEDED, needed = 0;

	for (; many / 2 >= few; few *= 2)
		needed += doubling;
	needed += doubling / few * (many - few);
	return rate_many > rate_few && rate_many - rate_few >= needed;
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

/* Whatever the count, the next epoch is not counted. */
static void begin_phase(struct kt_tune *tune, enum kt_tune_phase phase,
			unsigned threads)
{
	tune->phase = phase;
	tune->settling = true;
	tune->threads = threads;
}

/* Probe half of the threads, then half of these, as long as fewer do as well. */
static void begin_probes(struct kt_tune *tune)
{
	tune->probe_at =
		KT_MAX(tune->epochs, tune->probe_at) * KT_TUNE_PROBE_AGAIN;
	tune->least = tune->base;
	tune->least_rate = tune->base_rate;
	begin_phase(tune, KT_TUNE_PROBE, tune->base / 2);
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
	    !is_worth(tune->base, tune->base_rate, tune->threads, rate)) {
		set_threads(tune, tune->base);
		hold_count(tune, HOLD_FIRST);
		return;
	}
	tune->base = tune->threads;
	tune->base_rate = rate;
	if (tune->threads == tune->limit)
		hold_count(tune, HOLD_FIRST);
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
	tune->hold_next = HOLD_FIRST;
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
		 (tune->threads > 1 && tune->hold_next >= 16 * HOLD_FIRST))
		try_down(tune);
	else
		hold_count(tune, tune->hold_next);
}

/* A whole trial then decides about the least count that did as well. */
static void end_probe(struct kt_tune *tune, uint64_t rate)
{
	if (!is_worth(tune->threads, rate, tune->least, tune->least_rate)) {
		tune->least = tune->threads;
		tune->least_rate = rate;
		if (tune->threads > 1) {
			begin_phase(tune, KT_TUNE_PROBE, tune->threads / 2);
			return;
		}
	}
	begin_phase(tune,
		    tune->least < tune->base ? KT_TUNE_DOWN : KT_TUNE_HOLD,
		    tune->least);
}

/* A step that pays may pay again: go on at once, with coarse steps by doubling. */
static void paid_up(struct kt_tune *tune, uint64_t rate)
{
	tune->cooldown_next = COOLDOWN_FIRST;
	tune->base = tune->threads;
	tune->base_rate = rate;
	tune->hold_next = HOLD_FIRST;
	if (tune->threads == tune->limit) {
		hold_count(tune, HOLD_FIRST);
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
	if (is_worth(tune->base, tune->base_rate, tune->threads, rate) &&
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
	if (is_worth(tune->threads, rate, tune->base, tune->base_rate)) {
		bool finer;

		set_threads(tune, tune->base);
		finer = use_finer_steps(tune);
		if (finer && tune->descending)
			try_down(tune);
		else
			hold_count(tune, finer ? HOLD_FIRST : tune->hold_next);
		return;
	}
	tune->base = tune->threads;
	tune->base_rate = rate;
	tune->hold_next = HOLD_FIRST;
	tune->cooldown_next = COOLDOWN_FIRST;
	tune->descending = true;
	if (tune->threads == 1)
		hold_count(tune, HOLD_FIRST);
	else
		try_down(tune);
}

/* At the limit, also what others hold now. */
static unsigned asked_for(const struct kt_tune *tune)
{
	return tune->threads == tune->limit ? tune->wish : tune->threads;
}

/* ---- the ramp ---- */

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

/* Rates of one thread are no measure for what all do: begin anew. */
static void end_ramp(struct kt_tune *tune, unsigned threads)
{
	begin_phase(tune, KT_TUNE_HOLD, KT_MIN(threads, tune->limit));
	tune->hold = threads < tune->limit ? HOLD_RAMPED : HOLD_FIRST;
	tune->base = 0;
	tune->probe_at = KT_TUNE_PROBE_AFTER * KT_TUNE_PROBE_AGAIN;
}

static void ramp_to(struct kt_tune *tune, unsigned threads)
{
	begin_phase(tune, KT_TUNE_RAMP, KT_MIN(threads, tune->limit));
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

/* Between the count that was best and one that was too many, or that all are. */
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
		return !is_worth(tune->threads, tune->ramp_rate, tune->base,
				 tune->base_rate);
	return is_worth(tune->base, tune->base_rate, tune->threads,
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

static void begin_epoch(struct kt_tune *tune, uint64_t now_ns, uint64_t units)
{
	tune->epoch_ns = now_ns;
	tune->epoch_units = units;
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
		return asked_for(tune);
	begin_epoch(tune, now_ns, own);
	tune->settling = false;
	if (forward && !settling)
		judge_step(tune, own, kt_rate(done, ns));
	if (!kt_tune_ramps(tune))
		begin_epoch(tune, now_ns, units);
	return asked_for(tune);
}

void kt_tune_ramp_end(struct kt_tune *tune, uint64_t now_ns, uint64_t units)
{
	end_ramp(tune, tune->limit);
	begin_epoch(tune, now_ns, units);
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

/* The rate of the former count says nothing about the new one.  So try all threads
 * that are allowed, as at the beginning.  A trial of whether the new ones pay did
 * worse: the last of 20 jobs that share 819 permits then ended a seventh later. */
static void begin_again(struct kt_tune *tune, unsigned limit)
{
	tune->settling = true;
	tune->outliers = 0;
	tune->fine = 0;
	tune->threads = KT_MIN(tune->wish, limit);
	tune->limit = limit;
	tune->base = 0;
	hold_count(tune, HOLD_FIRST);
}

void kt_tune_limit(struct kt_tune *tune, unsigned had, bool all)
{
	unsigned limit = all ? tune->max : KT_MAX(had, 1);

	/* To get all of a lower count says nothing about a higher one. */
	if (limit == tune->limit || (all && tune->threads < tune->limit))
		return;
	/* A step of a ramp asks for less than what may pay. */
	if (tune->phase != KT_TUNE_RAMP)
		tune->wish = asked_for(tune);
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
		return asked_for(tune);
	begin_epoch(tune, now_ns, units);
	if (forward)
		tune->settling = false;
	if (forward && !settling)
		end_epoch(tune, kt_rate(done, ns));
	return asked_for(tune);
}
