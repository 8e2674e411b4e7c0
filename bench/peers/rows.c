/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Statistics of a few samples, and the tables that they go into.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

struct row *results_row(struct results *results)
{
	if (results->nr_rows == MAX_ROWS)
		abort();
	return &results->rows[results->nr_rows++];
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
