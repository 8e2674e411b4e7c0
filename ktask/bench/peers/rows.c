/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The tables that samples go into.
 */
#include <stdlib.h>
#include <string.h>

#include "rows.h"

struct row *results_row(struct results *results, const double *seconds,
			unsigned nr)
{
	double *sorted = stats_copy(seconds, nr);
	struct row *row = &results->rows[results->nr_rows++];

	if (results->nr_rows > MAX_ROWS)
		abort();
	row->samples = stats_copy(seconds, nr);
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
