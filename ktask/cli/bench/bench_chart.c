/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The chart that `ktask bench` draws in a terminal: a bar for each row, solid
 * up to the low end of the interval and light from there to the high end.  A
 * row without an interval has no bar, except the first row and unpaired ones.  The chart
 * is plain text, so that it may go into a file or a mail; without UTF-8 it is ASCII.
 *
 * gnuplot's dumb terminal is not used: the height of its cells is a tenth of the usual
 * range of two rows, and intervals are smaller.  Also, gnuplot may be missing.
 */
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define BAR_CELLS 50

static const struct palette {
	const char *solid, *light;
} ascii_bars = { "#", "-" }, block_bars = { "\u2588", "\u2591" };

static const struct palette *palette_of_locale(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") ? &ascii_bars
						     : &block_bars;
}

static void print_repeated(const char *cell, int times)
{
	while (times-- > 0)
		fputs(cell, stdout);
}

/* The first row and unpaired rows have no interval and get a bar nevertheless. */
static bool has_bar(const struct bench_figures *figures)
{
	return figures->shown || figures->speedup.confidence > 0;
}

static void draw_row(const struct bench_figures *figures, double scale,
		     const struct palette *palette)
{
	const struct bench_row *row = figures->row;
	const struct ratio *ratio = &figures->speedup;
	int solid = (int)(ratio->low * scale + 0.5);
	int cells = (int)(ratio->high * scale + 0.5);

	if (row->command)
		printf("  %-12.12s |", row->name);
	else
		printf("%5u  |", row->threads);
	if (!has_bar(figures)) {
		printf(" no interval\n");
		return;
	}
	print_repeated(palette->solid, solid);
	print_repeated(palette->light, cells - solid);
	if (figures->shown)
		printf("%*s%.2fx\n", BAR_CELLS - cells + 1, "", ratio->median);
	else
		printf("%*sunclear\n", BAR_CELLS - cells + 1, "");
}

void bench_print_chart(const struct bench *bench)
{
	const struct palette *palette = palette_of_locale();
	double most = 1;
	unsigned nr;
	struct bench_figures *figures = bench_figures_of(bench, &nr);

	for (unsigned i = 0; i < nr; i++)
		if (has_bar(&figures[i]) && figures[i].speedup.high > most)
			most = figures[i].speedup.high;
	if (nr)
		printf("\n  %-*s  speedup; %s = its interval\n",
		       bench->work.op ? 3 : 12, bench->work.op ? "thr" : "",
		       palette->light);
	for (unsigned i = 0; i < nr; i++)
		draw_row(&figures[i], BAR_CELLS / most, palette);
	free(figures);
}
