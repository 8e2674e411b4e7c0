/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Thread counts to measure: see tune_counts.h.
 *
 * Behaves badly on curves with two peaks: it may refine the lower one.  All measured
 * counts are kept, so the result is at least as good as the best power of two.
 */
#include "tune_counts.h"

#define AS_GOOD 1.03

unsigned pick_first(unsigned max, unsigned counts[PICK_MAX])
{
	unsigned nr = 0, threads;

	for (threads = 1; threads < max && nr < PICK_MAX - 1; threads *= 2)
		counts[nr++] = threads;
	counts[nr++] = max;
	return nr;
}

unsigned pick_best(const struct pick *points, unsigned nr)
{
	unsigned fastest = 0;

	for (unsigned i = 1; i < nr; i++)
		if (points[i].seconds < points[fastest].seconds)
			fastest = i;
	for (unsigned i = 0; i < fastest; i++)
		if (points[i].seconds <= AS_GOOD * points[fastest].seconds)
			return i;
	return fastest;
}

/* The middle of two counts; 0 where they are near enough. */
static unsigned middle_count(unsigned few, unsigned many)
{
	unsigned near = few / 8 > 1 ? few / 8 : 1;

	return many - few > near ? few + (many - few) / 2 : 0;
}

unsigned pick_next(const struct pick *points, unsigned nr, unsigned counts[2])
{
	unsigned best = pick_best(points, nr), found = 0, count;

	if (best > 0) {
		count = middle_count(points[best - 1].threads,
				     points[best].threads);
		if (count)
			counts[found++] = count;
	}
	if (best + 1 < nr) {
		count = middle_count(points[best].threads,
				     points[best + 1].threads);
		if (count)
			counts[found++] = count;
	}
	return found;
}
