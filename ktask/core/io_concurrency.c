/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * I/O concurrency: hill climbing by doubling and halving, one trial after another.
 *
 * A trial with a worse count slows the job down.  So each trial that changes nothing
 * doubles the time to the next.
 */
#include "core/io_concurrency.h"
#include "core/rate.h"

/* Twice as many threads must bring this part of the rate, as 1 / n. */
#define GAIN_NEEDED 16
/* Windows before a trial, so that there is a rate to compare with; the most windows of a
 * trial; and about how many windows a mean covers. */
#define WINDOWS_BEFORE 2
#define WINDOWS_TRIED 6
#define WINDOWS_KEPT 8
/* Windows between trials, first and last. */
#define HOLD_FIRST 16
#define HOLD_LAST 1024
/* The longest hold at the beginning of a job, which may use another device. */
#define HOLD_NEXT_JOB 64
/* The least spread to assume, as 1 / n: two windows say little about it. */
#define SPREAD_LEAST 32
/* A window is an outlier if its distance from the mean is more than 1 / OUTLIER_PART of
 * the mean, and more than OUTLIER_SPREADS times the spread.  After OUTLIER_WINDOWS of
 * them in a row the rate has changed. */
#define OUTLIER_WINDOWS 3
#define OUTLIER_PART 5
#define OUTLIER_SPREADS 3

static void set_bounds(struct kt_io *io, unsigned least, unsigned most)
{
	io->least = KT_MAX(least, 1);
	io->most = KT_MAX(most, io->least);
	io->base = KT_MIN(KT_MAX(io->base, io->least), io->most);
	io->threads = io->base;
	io->phase = KT_IO_HOLD;
}

static void forget_rate(struct kt_io *io)
{
	io->held = (struct kt_io_rate){ 0, 0 };
	io->spread = 0;
	io->outliers = 0;
}

/* No window of the job has been measured yet. */
static void begin_job(struct kt_io *io, unsigned least, unsigned most)
{
	set_bounds(io, least, most);
	forget_rate(io);
	io->settling = true;
	io->from_ns = 0;
	io->from_units = 0;
	io->windows = 0;
}

void kt_io_begin(struct kt_io *io, unsigned least, unsigned most,
		 unsigned start)
{
	io->base = start;
	io->hold = 0;
	io->hold_next = HOLD_FIRST;
	io->down_next = false;
	io->cut = false;
	begin_job(io, least, most);
}

static void hold_count(struct kt_io *io)
{
	io->phase = KT_IO_HOLD;
	io->cut = false;
	io->hold = io->hold_next;
	io->hold_next = KT_MIN(io->hold_next * 2, HOLD_LAST);
}

/* A trial that was cut off by the end of its job begins again, earlier, in the next
 * job.  If it is cut off there too, the other direction is next. */
static void resume_trial(struct kt_io *io)
{
	if (io->cut) {
		hold_count(io);
	} else {
		io->cut = true;
		io->hold = 0;
		io->down_next = io->phase == KT_IO_DOWN;
	}
}

void kt_io_resume(struct kt_io *io, unsigned least, unsigned most)
{
	if (io->phase != KT_IO_HOLD)
		resume_trial(io);
	io->hold = KT_MIN(io->hold, HOLD_NEXT_JOB);
	begin_job(io, least, most);
}

void kt_io_pause(struct kt_io *io)
{
	io->settling = true;
	io->from_ns = 0;
}

void kt_io_bound(struct kt_io *io, unsigned least, unsigned most)
{
	unsigned base = io->base, threads = io->threads;

	if (least == io->least && most == io->most)
		return;
	if (base >= least && base <= most && threads >= least &&
	    threads <= most) {
		io->least = least;
		io->most = most;
		return;
	}
	set_bounds(io, least, most);
	if (io->base != base)
		forget_rate(io);
	kt_io_pause(io);
}

/* ---- means ---- */

static void add_window(struct kt_io_rate *rate, uint64_t window)
{
	rate->nr = KT_MIN(rate->nr + 1, WINDOWS_KEPT);
	if (window > rate->mean)
		rate->mean += (window - rate->mean) / rate->nr;
	else
		rate->mean -= (rate->mean - window) / rate->nr;
}

/*
 * How far the difference of two means may be from the true difference, in sixteenths.
 * With normal noise, one standard deviation is 1.25 mean distances.  The standard
 * deviation of the difference of two means over n windows is sqrt(2 / n) times that.
 */
static uint64_t mean_error(const struct kt_io *io)
{
	static const unsigned char roots[WINDOWS_KEPT + 1] = { 28, 28, 20,
							       16, 14, 13,
							       12, 11, 10 };
	unsigned nr = KT_MIN(io->held.nr, io->tried.nr);
	uint64_t spread = KT_MAX(io->spread, io->held.mean / SPREAD_LEAST);

	return spread / 16 * roots[nr];
}

/* ---- trials ---- */

static void set_threads(struct kt_io *io, unsigned threads)
{
	io->threads = threads;
	kt_io_pause(io);
}

static void try_count(struct kt_io *io, enum kt_io_phase phase,
		      unsigned threads)
{
	io->phase = phase;
	io->tried = (struct kt_io_rate){ 0, 0 };
	set_threads(io, threads);
}

/* Return: false where there are no more. */
static bool try_up(struct kt_io *io)
{
	io->down_next = true;
	if (io->base >= io->most)
		return false;
	try_count(io, KT_IO_UP, KT_MIN(io->base * 2, io->most));
	return true;
}

static bool try_down(struct kt_io *io)
{
	io->down_next = false;
	if (io->base <= io->least)
		return false;
	try_count(io, KT_IO_DOWN, KT_MAX(io->base / 2, io->least));
	return true;
}

/*
 * Does the larger count pay?  Steps that are not a whole doubling count in part.
 *
 * One thread too many costs little, one too few costs much.  So at the end of a
 * trial threads join if they probably pay, and leave only if they surely do not.
 */
enum verdict { LESS, MORE, UNKNOWN };

static enum verdict judge_trial(const struct kt_io *io)
{
	bool up = io->phase == KT_IO_UP;
	unsigned few = up ? io->base : io->threads;
	unsigned many = up ? io->threads : io->base;
	uint64_t low = up ? io->held.mean : io->tried.mean;
	uint64_t high = up ? io->tried.mean : io->held.mean;
	uint64_t needed = low / GAIN_NEEDED;
	uint64_t unsure = mean_error(io);
	bool last = io->tried.nr >= WINDOWS_TRIED;

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

/* The count of the trial is better: go on from there. */
static void adopt_trial(struct kt_io *io)
{
	io->base = io->threads;
	io->held = io->tried;
	io->hold_next = HOLD_FIRST;
	io->hold = 0;
	io->cut = false;
	io->down_next = io->phase == KT_IO_DOWN;
	io->phase = KT_IO_HOLD;
}

/* More threads did not pay: fewer may do as well. */
static void reject_trial(struct kt_io *io)
{
	bool was_up = io->phase == KT_IO_UP;

	set_threads(io, io->base);
	if (was_up && try_down(io))
		return;
	hold_count(io);
}

static void count_trial_window(struct kt_io *io, uint64_t rate)
{
	enum verdict verdict;

	add_window(&io->tried, rate);
	verdict = judge_trial(io);
	if (verdict == UNKNOWN)
		return;
	if ((verdict == MORE) == (io->phase == KT_IO_UP))
		adopt_trial(io);
	else
		reject_trial(io);
}

/* ---- between trials ---- */

/* Something else changed the rate: measure it anew, and try other counts soon. */
static void notice_change(struct kt_io *io, uint64_t rate)
{
	uint64_t off = kt_distance(rate, io->held.mean);

	if (io->held.nr < WINDOWS_BEFORE ||
	    off <= io->held.mean / OUTLIER_PART ||
	    off / OUTLIER_SPREADS <= io->spread)
		io->outliers = 0;
	else
		io->outliers++;
	if (io->outliers < OUTLIER_WINDOWS)
		return;
	forget_rate(io);
	io->hold_next = HOLD_FIRST;
	io->hold = KT_MIN(io->hold, WINDOWS_BEFORE);
}

static void update_rate(struct kt_io *io, uint64_t rate)
{
	uint64_t off = kt_distance(rate, io->held.mean);

	if (io->held.nr == 1)
		io->spread = off / 2;
	else if (io->held.nr > 1)
		io->spread = io->spread - io->spread / 8 + off / 8;
	add_window(&io->held, rate);
}

static void count_held_window(struct kt_io *io, uint64_t rate)
{
	notice_change(io, rate);
	update_rate(io, rate);
	if (io->hold)
		io->hold--;
	if (io->hold || io->held.nr < WINDOWS_BEFORE)
		return;
	if (io->down_next ? try_down(io) || try_up(io)
			  : try_up(io) || try_down(io))
		return;
	hold_count(io);
}

/* ---- windows ---- */

static void begin_window(struct kt_io *io, uint64_t now_ns, uint64_t units)
{
	io->from_ns = now_ns;
	io->from_units = units;
}

/* Chunks of each thread that end a window which has lasted for @ns. */
static uint64_t chunks_needed(const struct kt_io *io, uint64_t ns)
{
	if (io->settling)
		return KT_IO_SETTLE;
	return ns < KT_IO_LONG_NS ? KT_IO_CHUNKS : KT_IO_CHUNKS_LEAST;
}

static bool has_ended(const struct kt_io *io, uint64_t now_ns, uint64_t units,
		      uint64_t chunk)
{
	uint64_t ns = now_ns - io->from_ns;
	uint64_t chunks = (units - io->from_units) / KT_MAX(chunk, 1);

	return ns >= KT_IO_WINDOW_NS &&
	       chunks >= chunks_needed(io, ns) * io->threads;
}

unsigned kt_io_step(struct kt_io *io, uint64_t now_ns, uint64_t units,
		    uint64_t chunk)
{
	uint64_t rate;

	if (!io->from_ns || now_ns < io->from_ns || units < io->from_units) {
		begin_window(io, now_ns, units);
		return io->threads;
	}
	if (!has_ended(io, now_ns, units, chunk))
		return io->threads;
	rate = kt_rate(units - io->from_units, now_ns - io->from_ns);
	begin_window(io, now_ns, units);
	if (io->settling) {
		io->settling = false;
		return io->threads;
	}
	io->windows++;
	if (io->phase == KT_IO_HOLD)
		count_held_window(io, rate);
	else
		count_trial_window(io, rate);
	return io->threads;
}
