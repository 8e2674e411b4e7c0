/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How much faster is one side than the other?  Computed from pairs of consecutive runs,
 * one of each side.  If the machine is slower for a while, both runs are, so the ratio of
 * a pair varies much less than the times.
 */
#ifndef KTASK_CLI_RATIO_H
#define KTASK_CLI_RATIO_H

#include <stdbool.h>

/* With fewer pairs than that, no two of them enclose the median at 95 %. */
#define RATIO_LEAST_PAIRS 6
/* With fewer the interval is never taken for settled: see ratio.c. */
#define RATIO_SETTLED_PAIRS 8

struct ratio {
	double median; /* of the ratios of all pairs */
	double low, high; /* the interval; without one, of all pairs */
	double confidence; /* at least 0.95; 0: too few pairs, no interval */
	unsigned pairs;
};

/** ratio_of - from the ratios of @nr >= 1 pairs; they are sorted in place */
struct ratio ratio_of(double *ratios, unsigned nr);

/** ratio_width - of the interval, as a part of the median */
double ratio_width(const struct ratio *ratio);

/**
 * ratio_settled - is the ratio known within @width?
 *
 * A measurement that ends as soon as this holds needs a few pairs more than
 * an interval does: see ratio.c.
 */
bool ratio_settled(const struct ratio *ratio, double width);

/** ratio_disputed - is it open which side is the faster one? */
bool ratio_disputed(const struct ratio *ratio);

#endif /* KTASK_CLI_RATIO_H */
