/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A plot of speedup by thread count, drawn by gnuplot.
 */
#ifndef KTASK_CLI_PLOT_H
#define KTASK_CLI_PLOT_H

#include <stdbool.h>

struct plot_point {
	unsigned threads;
	double seconds; /* median */
	double speedup;
	double low, high; /* ends of its interval */
};

struct plot {
	const char *title;
	const char *subtitle;
	const char *warning; /* under the subtitle, or NULL */
	const struct plot_point *points;
	unsigned nr_points;
};

/** plot_suffix_ok - whether @path ends in .svg or .png */
bool plot_suffix_ok(const char *path);

/**
 * plot_verify - can a plot be written to @path?
 *
 * To be asked before the work whose result is plotted.  Starts gnuplot and
 * verifies @path; see target_verify().
 *
 * Return: 0, or 1 after a message.
 */
int plot_verify(const char *path);

/**
 * plot_write - draw into @path, replacing it
 *
 * Return: 0, or 1 after a message; then no file is left at @path.
 */
int plot_write(const char *path, const struct plot *plot);

#endif /* KTASK_CLI_PLOT_H */
