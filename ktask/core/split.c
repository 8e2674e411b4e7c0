/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Split: threads a job is worth, guided chunk sizes, aligned chunk edges, and
 * the cost estimate that bounds chunks in time.
 *
 * Behaves badly where cost rises a hundredfold from one unit to the next: the
 * first expensive chunk is then sized for cheap units.  The guided bound (a quarter
 * of a thread's share) keeps that chunk from becoming the tail.
 */
#include "core/split.h"

#define GUIDED_DIVISOR 4
#define COST_MAX_NS (1ull << (63 - KT_COST_SHIFT))

unsigned kt_split_threads(uint64_t units, uint64_t min_chunk, unsigned max)
{
	uint64_t worth = units / KT_MAX(min_chunk, 1);

	return (unsigned)KT_MAX(KT_MIN(worth, max), 1);
}

/* Units that take @ns at @cost; the cost is not 0. */
static uint64_t units_in(uint64_t ns, uint64_t cost)
{
	return (KT_MIN(ns, COST_MAX_NS - 1) << KT_COST_SHIFT) / cost;
}

uint64_t kt_split_size(const struct kt_split *split, uint64_t remaining,
		       unsigned threads, const struct kt_cost *cost)
{
	uint64_t guided = remaining / GUIDED_DIVISOR / KT_MAX(threads, 1);
	/* The caller of a long job raises it once. */
	uint64_t target_ns = kt_load(&split->target_ns);
	uint64_t timed;

	if (!cost->mean)
		return split->min_chunk;
	timed = KT_MAX(units_in(target_ns, cost->high),
		       units_in(KT_MIN(KT_SHORTEST_NS, target_ns), cost->mean));
	return KT_MAX(KT_MIN(guided, timed), split->min_chunk);
}

uint64_t kt_split_usual(const struct kt_split *split,
			const struct kt_cost *cost)
{
	uint64_t mean = kt_load(&cost->mean);

	if (!mean)
		return split->min_chunk;
	return KT_MAX(units_in(kt_load(&split->target_ns), mean),
		      split->min_chunk);
}

uint64_t kt_split_usual_ns(const struct kt_split *split,
			   const struct kt_cost *cost)
{
	uint64_t mean = kt_load(&cost->mean);

	if (!mean)
		return 0;
	if (split->min_chunk > UINT64_MAX / mean)
		return UINT64_MAX >> KT_COST_SHIFT;
	return KT_MAX(split->min_chunk * mean >> KT_COST_SHIFT,
		      kt_load(&split->target_ns));
}

uint64_t kt_split_end(const struct kt_split *split, uint64_t base,
		      uint64_t from, uint64_t size, uint64_t limit)
{
	uint64_t mask = split->align - 1;
	uint64_t left = limit - from;
	uint64_t end;

	if (size >= left || left - size < split->min_chunk)
		return limit;
	end = ((base + from + size) & ~mask) - base;
	/* Rounded down below a minimum chunk (or below @from): round up. */
	if (end <= from || end > from + size || end - from < split->min_chunk) {
		uint64_t least = base + from + split->min_chunk;

		if (least > UINT64_MAX - mask)
			return limit;
		end = ((least + mask) & ~mask) - base;
	}
	if (end >= limit || limit - end < split->min_chunk)
		return limit;
	return end;
}

void kt_cost_add(struct kt_cost *cost, uint64_t units, uint64_t ns)
{
	uint64_t seen;

	ns = KT_MIN(KT_MAX(ns, 1), COST_MAX_NS - 1);
	seen = KT_MAX((ns << KT_COST_SHIFT) / units, 1);
	if (!cost->mean) {
		cost->mean = seen;
		cost->high = seen;
		return;
	}
	cost->mean = KT_MAX(cost->mean - cost->mean / 8 + seen / 8, 1);
	if (seen > cost->high)
		cost->high = seen;
	else
		cost->high -= (cost->high - seen) / 32;
}
