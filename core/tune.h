/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tune: how many threads a job should have, found while it runs.
 *
 * The measured rate (units per time of the whole job) decides.  The number of
 * threads starts low, doubles while twice as many still bring a twentieth, goes
 * back when they do not, and is tried a step up or down again at growing
 * intervals, by finer steps where coarse ones do not pay; what pays is tried
 * further at once.  A rate that changes by itself tells of a change of load:
 * then the next trial begins at once.
 *
 * Is one thread perhaps as good as all?  In each job that lasts there is a
 * glimpse, as soon as there is a rate to compare it with, and again, since the
 * machine may have been busy in that moment, when eight times as much time has
 * passed; so short that where the answer is no it costs a 67th at most.
 *
 * Behaves badly where the cost of units changes in steps as long as an epoch:
 * a cheap stretch then looks like a gain.  The next probe corrects it.  Where
 * rates vary much from epoch to epoch nothing is concluded from a glimpse or
 * from a change.
 */
#ifndef KTASK_CORE_TUNE_H
#define KTASK_CORE_TUNE_H

#include "core/deps.h"

/* Long enough for several chunks of a thread, short enough to react. */
#define KT_TUNE_EPOCH_NS 8000000

/* Threads that a job starts with when nothing is known: the founders' 4. */
#define KT_TUNE_START 4

/* An epoch of the glimpse of a single thread; after so many others, and then
 * each time so many times as many; only in jobs that will have lasted
 * 2^KT_TUNE_GLIMPSE_JOB ns, 134 ms, in all: there the glimpse and the epoch
 * before it, in which threads leave, are 1/67.  Neither ends before a chunk
 * does: so many chunks of each thread are in such a job at least. */
#define KT_TUNE_GLIMPSE_NS 1000000
#define KT_TUNE_GLIMPSE_AFTER 2
#define KT_TUNE_GLIMPSE_AGAIN 8
#define KT_TUNE_GLIMPSE_JOB 27
#define KT_TUNE_GLIMPSE_CHUNKS 128

enum kt_tune_phase {
	KT_TUNE_GROW,
	KT_TUNE_HOLD,
	KT_TUNE_UP,
	KT_TUNE_DOWN,
	KT_TUNE_GLIMPSE,
};

struct kt_tune {
	unsigned max; /* never more */
	uint64_t units; /* of the whole job */
	uint64_t chunk; /* units that a thread does at once, at least */
	unsigned threads; /* wanted now */
	unsigned base; /* what a trial is compared with */
	uint64_t base_rate; /* units per unit of time at base */
	uint64_t spread; /* of the rates at base: mean distance from it */
	enum kt_tune_phase phase;
	unsigned hold; /* epochs until the next trial */
	unsigned hold_next; /* the hold after that */
	unsigned fine; /* steps are so many times halved */
	unsigned odd; /* epochs in a row whose rate is another than usual */
	unsigned calm; /* epochs to come in which that is no alarm */
	unsigned calm_next; /* the same after the next alarm */
	unsigned epochs; /* held ones so far */
	unsigned glimpse_at; /* of these, the next glimpse */
	uint64_t epoch_ns; /* when the present epoch began */
	uint64_t epoch_units; /* units done by then */
	bool compared; /* another count than the first was tried */
	bool settling; /* the thread count changed: this epoch is not counted */
};

/*
 * kt_tune_begin - a job of @units that may have @max threads
 * @start: how many to begin with; 0: KT_TUNE_START
 */
void kt_tune_begin(struct kt_tune *tune, unsigned max, unsigned start,
		   uint64_t units, uint64_t now_ns);

/*
 * kt_tune_chunk - a thread does @units at once, at least; else any number
 *
 * Behind kt_tune_begin().  Before a chunk has ended nothing can be seen of one
 * thread, while the others stand still.
 */
void kt_tune_chunk(struct kt_tune *tune, uint64_t units);

/*
 * kt_tune_known - @threads were the best before: begin with them
 *
 * Behind kt_tune_begin().  They are held for a while before others are tried,
 * since growing from them costs what it cost the job that found them.
 */
void kt_tune_known(struct kt_tune *tune, unsigned threads);

/*
 * kt_tune_settled - the count that was found better than others and is held
 *
 * Return: 0 while there is none: nothing else was tried yet.
 */
unsigned kt_tune_settled(const struct kt_tune *tune);

/*
 * kt_tune_step - look at the rate, and decide
 * @units: that the job has done so far
 *
 * One thread at a time; cheap when the epoch has not ended.
 *
 * Return: threads that the job should have, 1 to max.
 */
unsigned kt_tune_step(struct kt_tune *tune, uint64_t now_ns, uint64_t units);

#endif /* KTASK_CORE_TUNE_H */
