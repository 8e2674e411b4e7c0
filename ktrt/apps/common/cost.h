/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a run cost: time, CPU, context switches, bytes to and from the disk, by
 * all ranks together.  Owns the line, or the JSON, that tells it.
 */
#ifndef APPS_COST_H
#define APPS_COST_H

#include <stdbool.h>
#include <stdint.h>

struct cost {
	double seconds; /* the slowest rank's */
	double cpu_seconds;
	uint64_t workers, tasks, replaced, surrenders, samples, overloaded;
	uint64_t switches, preemptions; /* voluntary, involuntary */
	uint64_t bytes_written, bytes_read;
	const char *backend; /* of UMT, or "none" */
};

/** cost_begin - from here on */
void cost_begin(struct cost *cost);

/** cost_end - to here; before the runtime stops.  All ranks call it; what
 * rank 0 has afterwards is the sum. */
void cost_end(struct cost *cost, uint64_t bytes_written, uint64_t bytes_read);

/**
 * cost_sum - of all ranks' results, at rank 0; all ranks call it
 * @own: of this rank's @parts parts, each folded in after a turn by one bit
 *
 * Return: at rank 0 what one rank with all parts has.
 */
uint64_t cost_sum(uint64_t own, unsigned parts);

/**
 * cost_tell - on standard output
 * @what: the application, its size
 * @cells: updates of a cell
 * @sum: of the result
 */
void cost_tell(const struct cost *cost, bool json, const char *what,
	       double cells, uint64_t sum);

#endif /* APPS_COST_H */
