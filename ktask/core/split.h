/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Split: how many threads a job is worth and how large its next chunk is.
 *
 * Owns the arithmetic only: no atomics, no time is read here.
 */
#ifndef KTASK_CORE_SPLIT_H
#define KTASK_CORE_SPLIT_H

#include "core/deps.h"

/* What the client fixed for the whole job. */
struct kt_split {
	uint64_t min_chunk; /* units, at least 1 */
	uint64_t align; /* power of two: inner chunk edges are multiples */
	uint64_t target_ns; /* no chunk shall take longer */
};

/*
 * The cost of a unit in nanoseconds, fixed point with KT_COST_SHIFT fraction bits: both
 * 50 ps for a byte and an hour for an item fit.  0: not known yet.
 */
#define KT_COST_SHIFT 20

struct kt_cost {
	uint64_t mean; /* moving average over about 8 chunks */
	uint64_t high; /* highest seen, decaying over about 32 chunks */
};

/*
 * A claim costs about 50 ns.  So at the mean cost a chunk takes at least this time, or
 * the target if that is less, even if expensive units may follow.
 */
#define KT_SHORTEST_NS 20000

/*
 * kt_split_threads - how many threads @units of work are worth
 *
 * Every thread gets at least one minimum chunk.  Return: 1 to @max.
 */
unsigned kt_split_threads(uint64_t units, uint64_t min_chunk, unsigned max);

/*
 * kt_split_size - units that the next chunk should have
 * @remaining: units of the range that are not claimed, at least 1
 * @threads: that work on the job now
 *
 * Guided self-scheduling (Polychronopoulos and Kuck 1987) with a divisor of 4
 * per thread, bounded in time by the highest cost seen.  A job whose cost is
 * not known yet starts with minimum chunks.  Not aligned yet.
 */
uint64_t kt_split_size(const struct kt_split *split, uint64_t remaining,
		       unsigned threads, const struct kt_cost *cost);

/*
 * kt_split_usual - units of a chunk while much is left, by the mean cost
 */
uint64_t kt_split_usual(const struct kt_split *split,
			const struct kt_cost *cost);

/* kt_split_usual_ns - what such a chunk takes; 0 while no cost is known */
uint64_t kt_split_usual_ns(const struct kt_split *split,
			   const struct kt_cost *cost);

/*
 * kt_split_end - where a chunk of about @size units ends
 * @base: position of unit 0 of the range (what alignment refers to)
 * @from: first unit of the chunk
 * @size: as from kt_split_size()
 * @limit: units of the range
 *
 * Aligned where possible; the rest of the range is taken whole when less than
 * a minimum chunk would be left.  Return: in (@from, @limit].
 */
uint64_t kt_split_end(const struct kt_split *split, uint64_t base,
		      uint64_t from, uint64_t size, uint64_t limit);

/* kt_cost_add - update the cost by a chunk of @units that took @ns */
void kt_cost_add(struct kt_cost *cost, uint64_t units, uint64_t ns);

#endif /* KTASK_CORE_SPLIT_H */
