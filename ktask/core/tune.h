/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tune: how many threads a job should have, found while it runs.
 *
 * The measured rate decides: units per time of the whole job.  A job begins with all
 * threads that policy allows, or with the count that `ktask tune` measured.  A long job
 * that may have 8 or more threads begins with the ramp below.  A job gives threads up if
 * fewer do as well, that is, if half as many lose less than a twentieth of the rate.  At
 * growing intervals it tries a count one step up or down, with finer steps where coarse
 * ones do not pay.  If a step pays, the next one follows at once.  If the rate changes
 * by itself, the load has changed, and the next trial begins at once.
 *
 * Probes find a much lower count soon.  A probe lasts a millisecond.  As soon as there
 * is a rate to compare with, the job probes half of its threads.  If they do as well, it
 * probes half of these, and so on.  A full trial of the last count that did as well
 * decides.  If all threads pay there is one probe, which costs at most a 67th of what is
 * left.  The machine may have been busy at that moment, so the probe is repeated, each
 * time after an interval eight times as long.
 *
 * Where few threads are best, many threads can have a third of the best rate.  Their
 * chunks take longer, and nobody adapts the job until the caller's chunk has ended.  So
 * a long job of many small chunks begins with a ramp: with its caller alone, then with
 * four times as many threads at each step as long as that pays, for a few short chunks.
 * The rate of a step is the caller's own rate times the number of threads, because the
 * chunks of the others have not ended yet.  A step that pays is taken at once.  A step
 * that does not is measured four times, so that a bad moment does not end the ramp.  If
 * a step gains little or nothing, the count in the middle is tried.  If all threads pay,
 * the ramp costs about 0.3 ms a step, if a minimum chunk takes less than 0.1 ms, and the
 * other threads begin one chunk later.  If the ramp ends with fewer than all, a trial of
 * more follows soon.
 *
 * Why not begin with one thread and double: a job for which all threads pay would be far
 * below its best rate for as many epochs as there are doublings, and most jobs are over
 * by then.  In the simulation without a ramp, with the curves of sim/thread_curves.c and
 * at most 64 threads, jobs of 48 ms reach 0.86 of their best rate if they begin with all
 * threads, and 0.68 if they begin with 4; jobs of 400 ms reach 0.97 and 0.94.
 *
 * Behaves badly where the cost of units changes in steps that are as long as an epoch: a
 * cheap stretch then looks like a gain.  The next trial corrects it.  If rates vary much
 * from epoch to epoch, nothing is concluded from a probe or from a change.  A job that is
 * over before its first probe keeps all threads, even if fewer would be faster: `ktask
 * tune` is for these.  If a job with a ramp has a first chunk that takes far longer than
 * the others, all threads wait for it.  If the first chunk is much cheaper (its pages are
 * present already), the ramp may end with one thread.  Then a trial of more comes after
 * 24 ms, one doubling follows every 10 ms, and 64 threads are back after about 80 ms.
 */
#ifndef KTASK_CORE_TUNE_H
#define KTASK_CORE_TUNE_H

#include "core/deps.h"

/* Long enough for several chunks of a thread, short enough to react. */
#define KT_TUNE_EPOCH_NS 8000000

/*
 * A probe lasts KT_TUNE_PROBE_NS.  The first one begins after KT_TUNE_PROBE_AFTER epochs,
 * or after 16 if there was a ramp, and each next one after KT_TUNE_PROBE_AGAIN times as
 * many.  Only jobs that will go on for 2^KT_TUNE_PROBE_LEFT ns (134 ms) have probes: the
 * probe and the epoch before it, in which threads leave, are 1/67 of that.  A probe does
 * not end before a chunk does, so KT_TUNE_PROBE_CHUNKS chunks of each thread must be left.
 */
#define KT_TUNE_PROBE_NS 1000000
#define KT_TUNE_PROBE_AFTER 2
#define KT_TUNE_PROBE_AGAIN 8
#define KT_TUNE_PROBE_LEFT 27
#define KT_TUNE_PROBE_CHUNKS 128

/*
 * A job that may have KT_TUNE_RAMP_THREADS threads, and has KT_TUNE_PROBE_CHUNKS chunks
 * for each, begins with a ramp.  If its first chunk shows that it is short, it has all
 * threads from then on.  The caller is measured for KT_TUNE_RAMP_NS; until then no chunk
 * shall take longer, unless a minimum chunk does.
 */
#define KT_TUNE_RAMP_THREADS 8
#define KT_TUNE_RAMP_NS 100000

enum kt_tune_phase {
	KT_TUNE_RAMP,
	KT_TUNE_GROW,
	KT_TUNE_HOLD,
	KT_TUNE_UP,
	KT_TUNE_DOWN,
	KT_TUNE_PROBE,
};

struct kt_tune {
	unsigned max; /* never more */
	unsigned limit; /* what could be had lately; at most max */
	unsigned wish; /* asked for while all of these pay */
	uint64_t units; /* of the whole job */
	uint64_t chunk; /* units that a thread does at once, at least */
	unsigned threads; /* wanted now */
	unsigned base; /* what a trial is compared with */
	uint64_t base_rate; /* units per unit of time at base */
	uint64_t spread; /* of the rates at base: mean distance from it */
	unsigned least; /* the least count that probes found as good as base */
	uint64_t least_rate;
	enum kt_tune_phase phase;
	unsigned hold; /* epochs until the next trial */
	unsigned hold_next; /* the hold after that */
	unsigned fine; /* steps are so many times halved */
	unsigned outliers; /* in a row: epochs with an unusual rate */
	unsigned cooldown; /* epochs in which outliers are not looked for */
	unsigned cooldown_next; /* the same after the next change */
	unsigned epochs; /* held ones so far */
	unsigned probe_at; /* of these, when the next probe begins */
	uint64_t epoch_ns; /* when the present epoch began */
	uint64_t epoch_units; /* units done by then */
	uint64_t ramp_rate; /* the best of the present step, */
	unsigned ramp_tries; /* of so many measured */
	bool known; /* the first count is no guess: no ramp */
	bool middle; /* the step is the ramp's last */
	bool descending; /* the trial before found that fewer do as well */
	bool settling; /* the thread count changed: this epoch is not counted */
};

/* kt_tune_begin - a job of @units that may have @max threads, and begins with
 * them */
void kt_tune_begin(struct kt_tune *tune, unsigned max, uint64_t units,
		   uint64_t now_ns);

/*
 * kt_tune_chunk - say that a chunk has at least @units
 *
 * After kt_tune_begin(); optional.  A probe of one thread learns nothing before that
 * thread has finished a chunk.
 */
void kt_tune_chunk(struct kt_tune *tune, uint64_t units);

/*
 * kt_tune_known - begin with @threads, which was measured to be the best count
 *
 * After kt_tune_begin().  They are held for a while before others are tried, and there
 * is no ramp.
 */
void kt_tune_known(struct kt_tune *tune, unsigned threads);

/*
 * kt_tune_ramp - begin with one thread if the job may have many, and has many chunks
 *
 * After kt_tune_chunk(), if the caller is free to take the next steps.
 *
 * Return: true if kt_tune_ramp_step() takes them, after each chunk of the caller.
 */
bool kt_tune_ramp(struct kt_tune *tune);

static inline bool kt_tune_ramps(const struct kt_tune *tune)
{
	return tune->phase == KT_TUNE_RAMP;
}

/*
 * kt_tune_ramp_step - as kt_tune_step(), while kt_tune_ramps()
 * @own: units that the caller has done
 * @units: that the job has
 */
unsigned kt_tune_ramp_step(struct kt_tune *tune, uint64_t now_ns, uint64_t own,
			   uint64_t units);

/* kt_tune_ramp_end - have all threads; a ramp cannot go on */
void kt_tune_ramp_end(struct kt_tune *tune, uint64_t now_ns, uint64_t units);

/*
 * kt_tune_limit - tell how many threads the job got after kt_tune_step(): @had
 * @all: it got all that it asked for
 *
 * Other jobs may hold the rest.  Then fewer threads are tried, and never more than @had
 * until more are allowed.  A limit that changes by more than a sixteenth ends a trial,
 * and the epoch does not count.
 */
void kt_tune_limit(struct kt_tune *tune, unsigned had, bool all);

/*
 * kt_tune_step - measure the rate, and decide
 * @units: that the job has done so far
 *
 * One thread at a time; cheap when the epoch has not ended.
 *
 * Return: threads that the job should ask for, 1 to max.  If it gets fewer, it asks for
 * all as long as those that it has pay.
 */
unsigned kt_tune_step(struct kt_tune *tune, uint64_t now_ns, uint64_t units);

#endif /* KTASK_CORE_TUNE_H */
