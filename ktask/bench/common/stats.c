/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Statistics of a few samples.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct stats stats_of(double *samples, unsigned nr)
{
	struct stats stats = { 0 };
	double squares = 0;

	if (!nr)
		return stats;
	qsort(samples, nr, sizeof(*samples), compare_values);
	stats.median = (samples[(nr - 1) / 2] + samples[nr / 2]) / 2;
	for (unsigned i = 0; i < nr; i++)
		stats.mean += samples[i] / nr;
	for (unsigned i = 0; i < nr; i++)
		squares += pow(samples[i] - stats.mean, 2);
	if (nr > 1 && stats.mean > 0)
		stats.stddev_pct = 100 * sqrt(squares / (nr - 1)) / stats.mean;
	return stats;
}

double *stats_copy(const double *samples, unsigned nr)
{
	double *copy = calloc(nr, sizeof(*copy));

	if (!copy)
		abort();
	memcpy(copy, samples, nr * sizeof(*copy));
	return copy;
}

double median_ratio(const double *a, const double *b, unsigned nr)
{
	double *ratios = stats_copy(a, nr);
	double median;

	for (unsigned i = 0; i < nr; i++)
		ratios[i] /= b[i];
	median = stats_of(ratios, nr).median;
	free(ratios);
	return median;
}
