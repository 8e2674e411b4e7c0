/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * From samples to figures.  A speedup comes from pairs: the first row's run of a round and
 * this row's run of the same round.  The median is not shown if the rounds do not agree
 * which of the two is faster and the ratio is not known well either.  Nor is it shown if
 * there are too few rounds for an interval, because it may be chance.
 *
 * Rows that were measured in rounds of their own (bench->unpaired) have no pairs.  Only
 * their speedup is a ratio of medians.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static struct stats stats_of_row(const struct bench_row *row,
				 const double *samples)
{
	memcpy(row->scratch, samples, row->nr * sizeof(*samples));
	return stats_of(row->scratch, row->nr);
}

static struct ratio ratio_of_medians(const struct bench_row *first,
				     const struct bench_row *row)
{
	double ratio = stats_of_row(first, first->seconds).median /
		       stats_of_row(row, row->seconds).median;

	return (struct ratio){ ratio, ratio, ratio, 0, 0 };
}

struct ratio bench_speedup(const struct bench *bench,
			   const struct bench_row *row)
{
	const struct bench_row *first = &bench->rows[0];
	/* An interrupt may come between the two runs of a pair. */
	unsigned nr = row->nr < first->nr ? row->nr : first->nr;

	if (bench->unpaired || !nr)
		return ratio_of_medians(first, row);
	for (unsigned i = 0; i < nr; i++)
		row->scratch[i] = first->seconds[i] / row->seconds[i];
	return ratio_of(row->scratch, nr);
}

/* One row alone is settled when its time is. */
static struct ratio ratio_that_counts(const struct bench *bench, unsigned i)
{
	const struct bench_row *row = &bench->rows[i];

	if (bench->nr_rows > 1)
		return bench_speedup(bench, row);
	memcpy(row->scratch, row->seconds, row->nr * sizeof(*row->seconds));
	return ratio_of(row->scratch, row->nr);
}

bool bench_is_settled(const struct bench *bench)
{
	for (unsigned i = bench->nr_rows > 1; i < bench->nr_rows; i++) {
		struct ratio ratio;

		if (!bench->rows[i].nr)
			return false;
		ratio = ratio_that_counts(bench, i);
		if (!ratio_settled(&ratio, bench->precision))
			return false;
	}
	return true;
}

static void compute_row(const struct bench *bench, const struct bench_row *row,
			struct bench_figures *figures)
{
	figures->row = row;
	figures->seconds = stats_of_row(row, row->seconds);
	figures->gb_per_s = bench->size_bytes / figures->seconds.median / 1e9;
	figures->cpu_seconds = stats_of_row(row, row->cpu_seconds).median;
	figures->job_cpu_seconds =
		stats_of_row(row, row->job_cpu_seconds).median;
	figures->speedup = bench_speedup(bench, row);
	figures->shown = bench->unpaired || row == &bench->rows[0] ||
			 (figures->speedup.confidence > 0 &&
			  (!ratio_disputed(&figures->speedup) ||
			   ratio_settled(&figures->speedup, bench->precision)));
}

bool bench_have_interval(const struct bench_figures *figures, unsigned nr)
{
	for (unsigned i = 1; i < nr; i++)
		if (!figures[i].speedup.confidence)
			return false;
	return true;
}

struct bench_figures *bench_figures_of(const struct bench *bench, unsigned *nr)
{
	struct bench_figures *figures;

	*nr = 0;
	if (!bench->nr_rows || !bench->rows[0].nr)
		return NULL;
	figures = calloc(bench->nr_rows, sizeof(*figures));
	if (!figures)
		return NULL;
	for (unsigned i = 0; i < bench->nr_rows; i++)
		if (bench->rows[i].nr)
			compute_row(bench, &bench->rows[i], &figures[(*nr)++]);
	return figures;
}
