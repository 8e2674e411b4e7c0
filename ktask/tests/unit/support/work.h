/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job whose every unit is watched: how often it was done and undone, and in
 * which order.  Positions are addresses of a byte array, one byte a unit.
 *
 * A test sets the fields it wants between work_init() and work_begin().  What
 * goes wrong inside a callback, perhaps in another thread, is counted in
 * faults and asserted by work_check_*() in the test's own thread.
 */
#ifndef UNIT_WORK_H
#define UNIT_WORK_H

#include "core/job.h"
#include "core/undo.h"

#define WORK_RANGES 8
#define WORK_WORKERS 16

struct work {
	struct kt_job job;
	struct kt_range ranges[WORK_RANGES];
	struct kt_worker workers[WORK_WORKERS];
	unsigned nr_workers;
	uint64_t unit_ns; /* cost of a unit on port_now_ns */

	/*
	 * Called in each chunk; a value that is not 0 makes it fail.  May be
	 * NULL.  Offsets count from the start of the array.
	 */
	int (*chunk)(struct work *work, uint64_t from, uint64_t to);
	void *chunk_arg;

	uint8_t *units; /* see enum work_state */
	uint64_t nr_units; /* of all ranges, and so of the array */
	uint64_t undo_calls;
	uint64_t undone; /* units */
	uint64_t undo_at; /* offset behind the last undone unit */
	uint32_t faults;
};

enum work_state { WORK_FRESH, WORK_DONE, WORK_FAILED, WORK_UNDONE };

/*
 * work_init - a job of @nr_ranges ranges of @units[] each, one behind the
 * other in memory, of nodes 0, 1, ...; one worker; minimum chunk 1
 */
void work_init(struct work *work, unsigned nr_ranges, const uint64_t *units);

/* work_begin - kt_job_begin() and kt_worker_begin() of @nr_workers workers */
void work_begin(struct work *work, unsigned nr_workers);

/* work_undo - kt_undo() over all workers */
void work_undo(struct work *work);

/* work_lowest - kt_undo_lowest() over all workers */
const struct kt_worker *work_lowest(struct work *work);

/* work_check_done - every unit done, once */
void work_check_done(const struct work *work);

/* work_check_undone - no unit is left done, none was undone that was not */
void work_check_undone(const struct work *work);

void work_free(struct work *work);

/* work_leave - a tick: leave after each chunk */
bool work_leave(struct kt_worker *worker, uint64_t now_ns);

#endif /* UNIT_WORK_H */
