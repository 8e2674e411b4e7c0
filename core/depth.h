/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Depth: how many threads of a job that waits for devices shall be in their
 * chunks at once, found while it runs.
 *
 * The queue depth of a device, as far as threads make it.  The measured rate
 * decides, as for threads that compute (core/tune.h), but their epochs are of
 * no use here: a device may finish a hundred chunks in 8 ms, or none.  So a
 * window lasts until each thread has done some chunks, fewer where they are long;
 * too few would measure nothing but which one happened to end.  Windows differ by
 * themselves, by a fifth where a device is shared: a trial goes on until the
 * difference to the rate before is larger than that, or enough windows say that
 * there is none.
 *
 * The count begins small, doubles while that brings a sixteenth, goes back when
 * it does not, and down while half as many surely do as well.  Then it is held,
 * and tried again at growing intervals.  What was found is kept for the next job
 * of the same kind: most last for no more than a dozen windows.
 *
 * Behaves badly where a rate changes by itself as slowly as windows follow one
 * another: a trial then takes the change for its own.  The next one, in the
 * other direction, corrects it.  Counts between the doublings are not tried.
 * Where chunks take 100 ms it is doubled about twice a second at most.
 */
#ifndef KTASK_CORE_DEPTH_H
#define KTASK_CORE_DEPTH_H

#include "core/deps.h"

/* Threads to begin with where nothing is known. */
#define KT_DEPTH_START 4

/* A window: so many chunks of each thread, and at least so long. */
#define KT_DEPTH_CHUNKS 8
#define KT_DEPTH_WINDOW_NS 8000000
/* Where that takes longer than this, so many chunks do. */
#define KT_DEPTH_LONG_NS 64000000
#define KT_DEPTH_CHUNKS_LEAST 2
/* Before it so many are not counted, while threads come and go. */
#define KT_DEPTH_SETTLE 2

/* The mean of some windows. */
struct kt_depth_rate {
	uint64_t mean;
	unsigned nr;
};

enum kt_depth_phase {
	KT_DEPTH_HOLD,
	KT_DEPTH_UP,
	KT_DEPTH_DOWN,
};

struct kt_depth {
	unsigned least, most; /* the bounds of what is wanted */
	unsigned threads; /* wanted now */
	unsigned base; /* the best so far: what a trial is compared with */
	enum kt_depth_phase phase;
	struct kt_depth_rate held; /* at base */
	struct kt_depth_rate tried; /* at threads, in a trial */
	uint64_t spread; /* of windows at base: mean distance from the mean */
	unsigned odd; /* windows in a row that are far from it */
	unsigned hold; /* windows until the next trial */
	unsigned hold_next; /* the hold after that */
	bool down_next; /* that one is for fewer */
	bool cut; /* the last trial was cut off by the end of its job */
	bool settling; /* this window is not counted */
	uint64_t from_ns, from_units; /* where it began */
	unsigned windows; /* counted in this job */
};

/* kt_depth_begin - nothing is known: @least to @most threads, first @start */
void kt_depth_begin(struct kt_depth *depth, unsigned least, unsigned most,
		    unsigned start);

/*
 * kt_depth_resume - the next job of the same kind goes on with what is known
 *
 * Of the count; its rate may be another and is measured anew.
 */
void kt_depth_resume(struct kt_depth *depth, unsigned least, unsigned most);

/*
 * kt_depth_bound - other bounds from now on
 * @least, @most: at least 1; at least @least
 *
 * A count outside them becomes the nearest within, and its rate is measured anew.
 */
void kt_depth_bound(struct kt_depth *depth, unsigned least, unsigned most);

/*
 * kt_depth_pause - it was not this count that worked just now
 *
 * Where too few threads were blocked for so many, or other limits held: what is
 * done until the next step is not counted.
 */
void kt_depth_pause(struct kt_depth *depth);

/*
 * kt_depth_step - look at the rate, and decide
 * @units: that the job has done so far
 * @chunk: units of a chunk, about
 *
 * One thread at a time; cheap when the window has not ended.
 *
 * Return: threads that shall be in chunks, running or blocked.
 */
unsigned kt_depth_step(struct kt_depth *depth, uint64_t now_ns, uint64_t units,
		       uint64_t chunk);

#endif /* KTASK_CORE_DEPTH_H */
