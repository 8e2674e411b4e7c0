/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * I/O concurrency: find out, while a job runs that waits for devices, how many of its
 * threads shall be in chunks at once.
 *
 * That is the queue depth of the device, as far as threads make it.  The measured rate
 * decides, as for threads that compute (core/tune.h).  Epochs of a fixed length do not
 * work here: a device may finish a hundred chunks in 8 ms, or none.  So a window lasts
 * until each thread has done some chunks; fewer if chunks are long.  With too few
 * chunks, it would depend on chance which of them end in the window.
 *
 * The rates of windows vary, by a fifth if the device is shared.  A trial goes on until
 * the rate differs from the former one by more than that, or until enough windows show
 * no difference.
 *
 * The count begins small and doubles while that raises the rate by a sixteenth.  If
 * doubling does not pay, the former count is taken again.  While half as many surely do
 * as well, the count is halved.  Then it is held, and other counts are tried at growing
 * intervals.  The next job of the same kind begins with it, because most jobs last for
 * a dozen windows at most.
 *
 * Behaves badly where a rate changes by itself as slowly as windows follow one
 * another: a trial takes that change for its own effect.  The next trial, in the
 * other direction, corrects it.  Counts between the doublings are not tried.
 * If chunks take 100 ms, the count doubles at most about twice a second.
 */
#ifndef KTASK_CORE_IO_CONCURRENCY_H
#define KTASK_CORE_IO_CONCURRENCY_H

#include "core/deps.h"

/* Threads of the first job of a kind. */
#define KT_IO_START 4

/* A window is so many chunks of each thread, and at least so long. */
#define KT_IO_CHUNKS 8
#define KT_IO_WINDOW_NS 8000000
/* A window that is longer than this needs only so many chunks. */
#define KT_IO_LONG_NS 64000000
#define KT_IO_CHUNKS_LEAST 2
/* So many chunks are not counted after a change, while threads come and go. */
#define KT_IO_SETTLE 2

/* The mean of some windows. */
struct kt_io_rate {
	uint64_t mean;
	unsigned nr;
};

enum kt_io_phase {
	KT_IO_HOLD,
	KT_IO_UP,
	KT_IO_DOWN,
};

struct kt_io {
	unsigned least, most; /* the bounds of what is wanted */
	unsigned threads; /* wanted now */
	unsigned base; /* the best so far: what a trial is compared with */
	enum kt_io_phase phase;
	struct kt_io_rate held; /* at base */
	struct kt_io_rate tried; /* at threads, in a trial */
	uint64_t spread; /* of windows at base: mean distance from the mean */
	unsigned outliers; /* windows in a row that are far from it */
	unsigned hold; /* windows until the next trial */
	unsigned hold_next; /* the hold after that */
	bool down_next; /* that one is for fewer */
	bool cut; /* the last trial was cut off by the end of its job */
	bool settling; /* this window is not counted */
	uint64_t from_ns, from_units; /* where it began */
	unsigned windows; /* counted in this job */
};

/* kt_io_begin - the first job of a kind: @least to @most threads, first @start */
void kt_io_begin(struct kt_io *io, unsigned least, unsigned most,
		 unsigned start);

/*
 * kt_io_resume - begin with the count that a former job of the same kind found
 *
 * The rate may differ and is measured anew.
 */
void kt_io_resume(struct kt_io *io, unsigned least, unsigned most);

/*
 * kt_io_bound - set other bounds from now on
 * @least, @most: at least 1; at least @least
 *
 * A count beyond a bound becomes that bound, and its rate is measured anew.
 */
void kt_io_bound(struct kt_io *io, unsigned least, unsigned most);

/*
 * kt_io_pause - do not count what is done until the next step
 *
 * For times in which another number of threads worked, because of other limits or
 * because too few threads were blocked.
 */
void kt_io_pause(struct kt_io *io);

/*
 * kt_io_step - measure the rate, and decide
 * @units: that the job has done so far
 * @chunk: units of a chunk, about
 *
 * One thread at a time; cheap when the window has not ended.
 *
 * Return: threads that shall be in chunks, running or blocked.
 */
unsigned kt_io_step(struct kt_io *io, uint64_t now_ns, uint64_t units,
		    uint64_t chunk);

#endif /* KTASK_CORE_IO_CONCURRENCY_H */
