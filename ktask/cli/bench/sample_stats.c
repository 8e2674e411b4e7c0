/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Statistics of a few samples: see sample_stats.h.
 */
#include <math.h>
#include <stdlib.h>

#include "sample_stats.h"

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct stats stats_of(double *samples, unsigned nr)
{
	struct stats stats = { 0 };
	double squares = 0;

	qsort(samples, nr, sizeof(*samples), compare_doubles);
	stats.least = samples[0];
	stats.median = (samples[(nr - 1) / 2] + samples[nr / 2]) / 2;
	for (unsigned i = 0; i < nr; i++)
		stats.mean += samples[i] / nr;
	for (unsigned i = 0; i < nr; i++)
		squares +=
			(samples[i] - stats.mean) * (samples[i] - stats.mean);
	if (nr > 1 && stats.mean > 0)
		stats.stddev_pct = 100 * sqrt(squares / (nr - 1)) / stats.mean;
	return stats;
}
