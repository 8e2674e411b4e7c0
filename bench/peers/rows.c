/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Statistics of a few samples, and the tables that they go into.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

static int compare(const void *a, const void *b)
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
	qsort(samples, nr, sizeof(*samples), compare);
	stats.median = (samples[(nr - 1) / 2] + samples[nr / 2]) / 2;
	for (unsigned i = 0; i < nr; i++)
		stats.mean += samples[i] / nr;
	for (unsigned i = 0; i < nr; i++)
		squares += pow(samples[i] - stats.mean, 2);
	if (nr > 1 && stats.mean > 0)
		stats.stddev_pct = 100 * sqrt(squares / (nr - 1)) / stats.mean;
	return stats;
}

static double *copy_of(const double *samples, unsigned nr)
{
	double *copy = calloc(nr, sizeof(*copy));

	if (!copy)
		abort();
	memcpy(copy, samples, nr * sizeof(*copy));
	return copy;
}

double median_ratio(const double *a, const double *b, unsigned nr)
{
	double *ratios = copy_of(a, nr);
	double median;

	for (unsigned i = 0; i < nr; i++)
		ratios[i] /= b[i];
	median = stats_of(ratios, nr).median;
	free(ratios);
	return median;
}

struct row *results_row(struct results *results, const double *seconds,
			unsigned nr)
{
	double *sorted = copy_of(seconds, nr);
	struct row *row = &results->rows[results->nr_rows++];

	if (results->nr_rows > MAX_ROWS)
		abort();
	row->samples = copy_of(seconds, nr);
	row->nr_samples = nr;
	row->seconds = stats_of(sorted, nr);
	free(sorted);
	return row;
}

void results_free(struct results *results)
{
	for (unsigned i = 0; i < results->nr_rows; i++)
		free((double *)results->rows[i].samples);
	results->nr_rows = 0;
}

void results_figure(struct results *results, const char *name,
		    const char *title, const char *peer, double value,
		    const char *unit)
{
	if (results->nr_figures == MAX_FIGURES)
		abort();
	results->figures[results->nr_figures++] =
		(struct figure){ name, title, peer, value, unit };
}
