/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Depth: hill climbing by doubling and halving, one trial after another.
 *
 * A trial costs what the other count is slower.  So each one that changes
 * nothing doubles the time to the next.
 */
#include "core/depth.h"
#include "core/rate.h"

/* Twice as many threads must bring this part of the rate, as 1 / n. */
#define GAIN_NEEDED 16
/* Windows before a trial, that a rate is known to compare with; at most of a
 * trial; and that a mean goes back to, about. */
#define WINDOWS_BEFORE 2
#define WINDOWS_TRIED 6
#define WINDOWS_KEPT 8
/* Windows between trials, first and last. */
#define HOLD_FIRST 16
#define HOLD_LAST 1024
/* What is left of it for the next job: that may have another device. */
#define HOLD_NEXT_JOB 64
/* Windows scatter by this part at least, as 1 / n: two say little of it. */
#define SPREAD_LEAST 32
/* A rate is another one when so many windows in a row are farther from it than
 * a part of it, as 1 / n, and than so many times what they scatter. */
#define ODD_WINDOWS 3
#define ODD_PART 5
#define ODD_SPREADS 3

static void bound(struct kt_depth *depth, unsigned least, unsigned most)
{
	depth->least = KT_MAX(least, 1);
	depth->most = KT_MAX(most, depth->least);
	depth->base = KT_MIN(KT_MAX(depth->base, depth->least), depth->most);
	depth->threads = depth->base;
	depth->phase = KT_DEPTH_HOLD;
}

static void forget_rate(struct kt_depth *depth)
{
	depth->held = (struct kt_depth_rate){ 0, 0 };
	depth->spread = 0;
	depth->odd = 0;
}

/* In a job of which no window has been seen. */
static void begin(struct kt_depth *depth, unsigned least, unsigned most)
{
	bound(depth, least, most);
	forget_rate(depth);
	depth->settling = true;
	depth->from_ns = 0;
	depth->from_units = 0;
	depth->windows = 0;
}

void kt_depth_begin(struct kt_depth *depth, unsigned least, unsigned most,
		    unsigned start)
{
	depth->base = start;
	depth->hold = 0;
	depth->hold_next = HOLD_FIRST;
	depth->down_next = false;
	depth->cut = false;
	begin(depth, least, most);
}

static void rest(struct kt_depth *depth)
{
	depth->phase = KT_DEPTH_HOLD;
	depth->cut = false;
	depth->hold = depth->hold_next;
	depth->hold_next = KT_MIN(depth->hold_next * 2, HOLD_LAST);
}

/* A trial that the end of the job cut off begins once more, earlier in the next
 * job; where it does not fit there either the other direction is next. */
static void take_up(struct kt_depth *depth)
{
	if (depth->cut) {
		rest(depth);
	} else {
		depth->cut = true;
		depth->hold = 0;
		depth->down_next = depth->phase == KT_DEPTH_DOWN;
	}
}

void kt_depth_resume(struct kt_depth *depth, unsigned least, unsigned most)
{
	if (depth->phase != KT_DEPTH_HOLD)
		take_up(depth);
	depth->hold = KT_MIN(depth->hold, HOLD_NEXT_JOB);
	begin(depth, least, most);
}

void kt_depth_pause(struct kt_depth *depth)
{
	depth->settling = true;
	depth->from_ns = 0;
}

void kt_depth_bound(struct kt_depth *depth, unsigned least, unsigned most)
{
	unsigned base = depth->base, threads = depth->threads;

	if (least == depth->least && most == depth->most)
		return;
	if (base >= least && base <= most && threads >= least &&
	    threads <= most) {
		depth->least = least;
		depth->most = most;
		return;
	}
	bound(depth, least, most);
	if (depth->base != base)
		forget_rate(depth);
	kt_depth_pause(depth);
}

/* ---- means ---- */

static void add(struct kt_depth_rate *rate, uint64_t window)
{
	rate->nr = KT_MIN(rate->nr + 1, WINDOWS_KEPT);
	if (window > rate->mean)
		rate->mean += (window - rate->mean) / rate->nr;
	else
		rate->mean -= (rate->mean - window) / rate->nr;
}

/*
 * How far the difference of two means of windows may be from the true one: with
 * normal noise 1.25 mean distances are a standard deviation, and that of the
 * difference is the root of 2 / n of it.  In sixteenths.
 */
static uint64_t doubt(const struct kt_depth *depth)
{
	static const unsigned char roots[WINDOWS_KEPT + 1] = { 28, 28, 20,
							       16, 14, 13,
							       12, 11, 10 };
	unsigned nr = KT_MIN(depth->held.nr, depth->tried.nr);
	uint64_t spread =
		KT_MAX(depth->spread, depth->held.mean / SPREAD_LEAST);

	return spread / 16 * roots[nr];
}

/* ---- trials ---- */

static void set_threads(struct kt_depth *depth, unsigned threads)
{
	depth->threads = threads;
	kt_depth_pause(depth);
}

static void try_count(struct kt_depth *depth, enum kt_depth_phase phase,
		      unsigned threads)
{
	depth->phase = phase;
	depth->tried = (struct kt_depth_rate){ 0, 0 };
	set_threads(depth, threads);
}

/* Return: false where there are no more. */
static bool try_up(struct kt_depth *depth)
{
	depth->down_next = true;
	if (depth->base >= depth->most)
		return false;
	try_count(depth, KT_DEPTH_UP, KT_MIN(depth->base * 2, depth->most));
	return true;
}

static bool try_down(struct kt_depth *depth)
{
	depth->down_next = false;
	if (depth->base <= depth->least)
		return false;
	try_count(depth, KT_DEPTH_DOWN, KT_MAX(depth->base / 2, depth->least));
	return true;
}

/*
 * Does it pay that there are more?  Steps that are cut short count in part.
 *
 * One too many costs little and one too few much: in the end more likely than not
 * is enough for others to join, but who leaves must surely have been of no use.
 */
enum verdict { LESS, MORE, UNKNOWN };

static enum verdict judge(const struct kt_depth *depth)
{
	bool up = depth->phase == KT_DEPTH_UP;
	unsigned few = up ? depth->base : depth->threads;
	unsigned many = up ? depth->threads : depth->base;
	uint64_t low = up ? depth->held.mean : depth->tried.mean;
	uint64_t high = up ? depth->tried.mean : depth->held.mean;
	uint64_t needed = low / GAIN_NEEDED;
	uint64_t unsure = doubt(depth);
	bool last = depth->tried.nr >= WINDOWS_TRIED;

	if (many / 2 < few)
		needed = needed / few * (many - few);
	if (last && up)
		unsure = 0;
	if (high >= low + needed + unsure)
		return MORE;
	if (high + unsure < low + needed)
		return LESS;
	return last ? MORE : UNKNOWN;
}

/* The count of the trial is better: on from there. */
static void adopt(struct kt_depth *depth)
{
	depth->base = depth->threads;
	depth->held = depth->tried;
	depth->hold_next = HOLD_FIRST;
	depth->hold = 0;
	depth->cut = false;
	depth->down_next = depth->phase == KT_DEPTH_DOWN;
	depth->phase = KT_DEPTH_HOLD;
}

/* More were of no use: fewer may do as well. */
static void reject(struct kt_depth *depth)
{
	bool was_up = depth->phase == KT_DEPTH_UP;

	set_threads(depth, depth->base);
	if (was_up && try_down(depth))
		return;
	rest(depth);
}

static void tried(struct kt_depth *depth, uint64_t rate)
{
	enum verdict verdict;

	add(&depth->tried, rate);
	verdict = judge(depth);
	if (verdict == UNKNOWN)
		return;
	if ((verdict == MORE) == (depth->phase == KT_DEPTH_UP))
		adopt(depth);
	else
		reject(depth);
}

/* ---- between trials ---- */

/* Something else changed the rate: it is measured anew, and the count soon. */
static void notice_change(struct kt_depth *depth, uint64_t rate)
{
	uint64_t off = kt_distance(rate, depth->held.mean);

	if (depth->held.nr < WINDOWS_BEFORE ||
	    off <= depth->held.mean / ODD_PART ||
	    off / ODD_SPREADS <= depth->spread)
		depth->odd = 0;
	else
		depth->odd++;
	if (depth->odd < ODD_WINDOWS)
		return;
	forget_rate(depth);
	depth->hold_next = HOLD_FIRST;
	depth->hold = KT_MIN(depth->hold, WINDOWS_BEFORE);
}

static void learn_rate(struct kt_depth *depth, uint64_t rate)
{
	uint64_t off = kt_distance(rate, depth->held.mean);

	if (depth->held.nr == 1)
		depth->spread = off / 2;
	else if (depth->held.nr > 1)
		depth->spread = depth->spread - depth->spread / 8 + off / 8;
	add(&depth->held, rate);
}

static void held(struct kt_depth *depth, uint64_t rate)
{
	notice_change(depth, rate);
	learn_rate(depth, rate);
	if (depth->hold)
		depth->hold--;
	if (depth->hold || depth->held.nr < WINDOWS_BEFORE)
		return;
	if (depth->down_next ? try_down(depth) || try_up(depth)
			     : try_up(depth) || try_down(depth))
		return;
	rest(depth);
}

/* ---- windows ---- */

static void begin_window(struct kt_depth *depth, uint64_t now_ns,
			 uint64_t units)
{
	depth->from_ns = now_ns;
	depth->from_units = units;
}

/* Chunks of each thread that make a window which has lasted for @ns. */
static uint64_t enough(const struct kt_depth *depth, uint64_t ns)
{
	if (depth->settling)
		return KT_DEPTH_SETTLE;
	return ns < KT_DEPTH_LONG_NS ? KT_DEPTH_CHUNKS : KT_DEPTH_CHUNKS_LEAST;
}

static bool has_ended(const struct kt_depth *depth, uint64_t now_ns,
		      uint64_t units, uint64_t chunk)
{
	uint64_t ns = now_ns - depth->from_ns;
	uint64_t chunks = (units - depth->from_units) / KT_MAX(chunk, 1);

	return ns >= KT_DEPTH_WINDOW_NS &&
	       chunks >= enough(depth, ns) * depth->threads;
}

unsigned kt_depth_step(struct kt_depth *depth, uint64_t now_ns, uint64_t units,
		       uint64_t chunk)
{
	uint64_t rate;

	if (!depth->from_ns || now_ns < depth->from_ns ||
	    units < depth->from_units) {
		begin_window(depth, now_ns, units);
		return depth->threads;
	}
	if (!has_ended(depth, now_ns, units, chunk))
		return depth->threads;
	rate = kt_rate(units - depth->from_units, now_ns - depth->from_ns);
	begin_window(depth, now_ns, units);
	if (depth->settling) {
		depth->settling = false;
		return depth->threads;
	}
	depth->windows++;
	if (depth->phase == KT_DEPTH_HOLD)
		held(depth, rate);
	else
		tried(depth, rate);
	return depth->threads;
}
