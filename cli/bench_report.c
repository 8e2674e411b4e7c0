/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What `ktask bench` prints: the table, the JSON object and the plot, all
 * from the same figures.  Speedup and GB/s come from medians (10^9 bytes to
 * the GB), the average and its ± from all runs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "plot.h"
#include "size.h"
#include "stats.h"

#define SUBTITLE (MACHINE_TEXT + 64)

struct figures {
	unsigned threads, threads_used, runs;
	struct stats seconds;
	double speedup;
	double gb_per_s;
	double cpu_seconds;
	double job_cpu_seconds;
};

static void compute(const struct bench *bench, const struct bench_row *row,
		    struct figures *figures)
{
	figures->threads = row->threads;
	figures->threads_used = row->threads_used;
	figures->runs = row->nr;
	figures->seconds = stats_of(row->seconds, row->nr);
	figures->gb_per_s = bench->size_bytes / figures->seconds.median / 1e9;
	figures->cpu_seconds = stats_of(row->cpu_seconds, row->nr).median;
	figures->job_cpu_seconds =
		stats_of(row->job_cpu_seconds, row->nr).median;
}

/* One entry for each row with samples; to be freed.  NULL: no memory. */
static struct figures *figures_of(const struct bench *bench, unsigned *nr)
{
	struct figures *figures = calloc(bench->nr_rows, sizeof(*figures));
	unsigned i;

	*nr = 0;
	if (!figures)
		return NULL;
	for (i = 0; i < bench->nr_rows; i++)
		if (bench->rows[i].nr)
			compute(bench, &bench->rows[i], &figures[(*nr)++]);
	for (i = 0; i < *nr; i++)
		figures[i].speedup =
			figures[0].seconds.median / figures[i].seconds.median;
	return figures;
}

/* Digits behind the point that show three figures of the smallest time. */
static int decimals(const struct figures *figures, unsigned nr)
{
	double least = figures[0].seconds.mean;
	int digits;
	unsigned i;

	for (i = 1; i < nr; i++)
		least = fmin(least, figures[i].seconds.mean);
	digits = 2 - (int)floor(log10(fmax(least, 1e-6)));
	return digits < 1 ? 1 : digits;
}

static void print_row(const struct figures *row, int digits)
{
	char percent[16] = "-"; /* one run has no deviation */

	if (row->runs > 1)
		snprintf(percent, sizeof(percent), "%.1f",
			 row->seconds.stddev_pct);
	printf("%5u%c %6.2fx %12.*f (±%5s) %9.2f %9.*f\n", row->threads,
	       row->threads_used < row->threads ? '*' : ' ', row->speedup,
	       digits, row->seconds.mean, percent, row->gb_per_s, digits,
	       row->cpu_seconds);
}

static void print_rows(const struct figures *figures, unsigned nr)
{
	int digits = decimals(figures, nr);
	unsigned i;

	printf("  thr  speedup  average sec (± %%)         GB/s   cpu sec\n");
	for (i = 0; i < nr; i++)
		print_row(&figures[i], digits);
}

static void print_notes(const struct bench *bench,
			const struct figures *figures, unsigned nr)
{
	unsigned i, fewer = 0;

	printf("\nspeedup and GB/s: by medians%s; "
	       "cpu sec: all threads, user and kernel\n",
	       figures[0].threads == 1 ? "" : ", over the first row");
	printf("other processes kept %.2f CPUs busy meanwhile\n",
	       bench->others_cpus);
	for (i = 0; i < nr; i++)
		fewer += figures[i].threads_used < figures[i].threads;
	if (fewer)
		printf("* fewer threads than that worked; 'ktask topo' says "
		       "what limits them\n");
}

/* What was measured, and where: a title and the line under it. */
static void describe(const struct bench *bench, char title[256],
		     char subtitle[SUBTITLE])
{
	char bytes[SIZE_TEXT], machine[MACHINE_TEXT];

	snprintf(title, 256, "%s: %s", bench->work.name, bench->work.summary);
	snprintf(subtitle, SUBTITLE, "%s, %u run%s each; %s",
		 size_text(bytes, bench->size_bytes), bench->runs,
		 bench->runs == 1 ? "" : "s",
		 machine_text(&bench->machine, machine));
}

void bench_print(const struct bench *bench)
{
	char title[256], subtitle[SUBTITLE];
	struct figures *figures;
	unsigned nr;

	figures = figures_of(bench, &nr);
	if (figures && nr) {
		describe(bench, title, subtitle);
		printf("%s\n%s\n\n", title, subtitle);
		print_rows(figures, nr);
		print_notes(bench, figures, nr);
	}
	free(figures);
}

static json_t *row_json(const struct figures *row)
{
	return json_pack("{s:i s:{s:f s:f s:f} s:f s:f s:f s:f s:i s:i}",
			 "threads", row->threads, "seconds", "median",
			 row->seconds.median, "mean", row->seconds.mean,
			 "stddev_pct", row->seconds.stddev_pct, "speedup",
			 row->speedup, "gb_per_s", row->gb_per_s, "cpu_seconds",
			 row->cpu_seconds, "job_cpu_seconds",
			 row->job_cpu_seconds, "threads_used",
			 row->threads_used, "runs", row->runs);
}

json_t *bench_json(const struct bench *bench)
{
	json_t *rows = json_array();
	struct figures *figures;
	unsigned i, nr;

	figures = figures_of(bench, &nr);
	for (i = 0; i < nr; i++)
		json_array_append_new(rows, row_json(&figures[i]));
	free(figures);
	return json_pack("{s:s s:I s:f s:o s:o}", "benchmark", bench->work.name,
			 "size_bytes", (json_int_t)bench->size_bytes,
			 "others_cpus", bench->others_cpus, "machine",
			 machine_json(&bench->machine), "rows", rows);
}

static void points_of(const struct figures *figures, unsigned nr,
		      struct plot_point *points)
{
	unsigned i;

	for (i = 0; i < nr; i++)
		points[i] = (struct plot_point){
			.threads = figures[i].threads,
			.seconds = figures[i].seconds.median,
			.speedup = figures[i].speedup,
			.stddev_pct = figures[i].seconds.stddev_pct,
		};
}

int bench_plot(const struct bench *bench, const char *path)
{
	char title[256], subtitle[SUBTITLE];
	struct plot plot = { .title = title, .subtitle = subtitle };
	struct plot_point *points;
	struct figures *figures;
	int status = 0;

	points = calloc(bench->nr_rows, sizeof(*points));
	figures = figures_of(bench, &plot.nr_points);
	if (points && figures && plot.nr_points) {
		describe(bench, title, subtitle);
		points_of(figures, plot.nr_points, points);
		plot.points = points;
		status = plot_write(path, &plot);
	}
	free(figures);
	free(points);
	return status;
}
