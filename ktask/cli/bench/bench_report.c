/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The table that `ktask bench` prints, and the plot file.  GB/s (10^9 bytes to
 * the GB) come from medians.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "plot.h"
#include "cli/ui/size.h"
#include "cli/ui/text.h"

#define INTERVAL_TEXT 40

/* Digits behind the point that show three figures of the smallest time. */
static int count_decimals(const struct bench_figures *figures, unsigned nr)
{
	double least = figures[0].seconds.least;
	int digits;

	for (unsigned i = 1; i < nr; i++)
		least = fmin(least, figures[i].seconds.least);
	digits = 2 - (int)floor(log10(fmax(least, 1e-6)));
	return digits < 1 ? 1 : digits;
}

/* So 80 columns have room for the widest interval, "(0.01 to 1234.56)", beside the longest
 * name in the demo, "ktask run -- qemu-system-x86_64". */
#define NAME_CELLS 31

/* Cells of the interval, the least and the median seconds. */
static const struct columns {
	int interval, least, median;
} operation_columns = { 15, 10, 11 }, command_columns = { 16, 9, 10 };

/* "1.88 to 1.97"; in brackets where that is all pairs and no interval. */
static const char *interval_text(const struct bench_figures *figures,
				 char buf[INTERVAL_TEXT])
{
	const struct ratio *ratio = &figures->speedup;
	bool all = ratio->confidence == 0;

	if (ratio->pairs < 2)
		return "-";
	snprintf(buf, INTERVAL_TEXT, "%s%.2f to %.2f%s", all ? "(" : "",
		 ratio->low, ratio->high, all ? ")" : "");
	return buf;
}

static void print_row(const struct bench_figures *figures, bool first,
		      int digits)
{
	const struct bench_row *row = figures->row;
	const struct columns *columns =
		row->command ? &command_columns : &operation_columns;
	char interval[INTERVAL_TEXT], speedup[16] = "-  ";

	if (figures->shown)
		snprintf(speedup, sizeof(speedup), "%.2fx",
			 figures->speedup.median);
	if (row->command)
		printf("  %-*.*s", NAME_CELLS, NAME_CELLS, row->name);
	else
		printf("%5u%c", row->threads,
		       row->threads_used < row->threads ? '*' : ' ');
	printf(" %7s %*s %*.*f %*.*f", speedup, columns->interval,
	       first ? "" : interval_text(figures, interval), columns->least,
	       digits, figures->seconds.least, columns->median, digits,
	       figures->seconds.median);
	if (!row->command)
		printf(" %8.2f %8.*f", figures->gb_per_s, digits,
		       figures->cpu_seconds);
	putchar('\n');
}

static void print_rows(const struct bench *bench,
		       const struct bench_figures *figures, unsigned nr)
{
	int digits = count_decimals(figures, nr);

	if (bench->work.op)
		printf("  thr  speedup    95%% interval  least sec  median sec"
		       "     GB/s  cpu sec\n");
	else
		printf("  %-*s %7s %*s %*s %*s\n", NAME_CELLS, "", "speedup",
		       command_columns.interval, "95% interval",
		       command_columns.least, "least sec",
		       command_columns.median, "median sec");
	for (unsigned i = 0; i < nr; i++)
		print_row(&figures[i], i == 0, digits);
}

/* What was measured, and where: a title and the line under it. */
static void describe_bench(const struct bench *bench, char title[256],
			   char machine[MACHINE_TEXT])
{
	char bytes[SIZE_TEXT];

	snprintf(title, 256, "%s: %s%s%s%s", bench->work.name,
		 bench->work.summary, bench->work.op ? ", " : "",
		 bench->work.op && bench->less_fits ? "up to " : "",
		 bench->work.op ? size_text(bytes, bench->size_bytes) : "");
	machine_text(&bench->machine, machine);
}

static void print_title(const struct bench *bench)
{
	char title[256], machine[MACHINE_TEXT];

	describe_bench(bench, title, machine);
	printf("%s\n%s\n", title, machine);
}

void bench_print_plan(const struct bench *bench)
{
	print_title(bench);
	if (bench->runs)
		printf("Measuring %u round%s.\n", bench->runs,
		       plural_suffix(bench->runs));
	else
		printf("Measuring for at most %.0f s, until each speedup is "
		       "known within %.0f %%.\n",
		       bench->max_seconds, 100 * bench->precision);
	putchar('\n');
	fflush(stdout);
}

static void print_legend(const struct bench *bench,
			 const struct bench_figures *figures, unsigned nr)
{
	unsigned fewer = 0;

	for (unsigned i = 0; i < nr; i++)
		fewer += figures[i].row->threads_used < figures[i].row->threads;
	if (fewer)
		printf("* fewer threads than that worked: no CPU was idle, "
		       "or a limit ('ktask topo')\n");
	printf("\nspeedup: time of the first row / time of this row");
	if (bench->unpaired)
		printf(", by medians\n");
	else
		printf(" in the same round, median\n");
	if (bench->work.op)
		printf("GB/s: by the median; cpu sec: all threads, user and kernel, median\n");
}

void bench_print(const struct bench *bench)
{
	unsigned nr;
	struct bench_figures *figures = bench_figures_of(bench, &nr);

	if (!figures)
		return;
	/* Whoever prints a plan has had the title. */
	if (bench->unpaired) {
		print_title(bench);
		putchar('\n');
	}
	print_rows(bench, figures, nr);
	print_legend(bench, figures, nr);
	bench_print_verdict(bench, figures, nr);
	free(figures);
}

static void points_of(const struct bench_figures *figures, unsigned nr,
		      struct plot_point *points)
{
	for (unsigned i = 0; i < nr; i++)
		points[i] = (struct plot_point){
			.threads = figures[i].row->threads,
			.seconds = figures[i].seconds.median,
			.speedup = figures[i].speedup.median,
			.low = figures[i].speedup.low,
			.high = figures[i].speedup.high,
		};
}

int bench_plot(const struct bench *bench, const char *path)
{
	char title[256], subtitle[MACHINE_TEXT];
	struct plot plot = { .title = title, .subtitle = subtitle };
	struct bench_figures *figures;
	int status = 0;
	struct plot_point *points = calloc(bench->nr_rows, sizeof(*points));

	figures = bench_figures_of(bench, &plot.nr_points);
	if (points && figures) {
		describe_bench(bench, title, subtitle);
		if (!bench_have_interval(figures, plot.nr_points))
			plot.warning = "too few rounds for an interval";
		points_of(figures, plot.nr_points, points);
		plot.points = points;
		status = plot_write(path, &plot);
	}
	free(figures);
	free(points);
	return status;
}
