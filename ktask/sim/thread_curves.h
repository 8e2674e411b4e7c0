/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Rates at which jobs are done, by the number of their threads.
 *
 * Rates are relative; between the points of a curve they are on a line, before
 * the first on the line from 0, behind the last they stay.
 */
#ifndef SIM_THREAD_CURVES_H
#define SIM_THREAD_CURVES_H

struct curve {
	const char *name, *source; /* no source: made up */
	struct {
		unsigned threads;
		double rate;
	} points[8];
	unsigned best; /* the least count with the best rate up to 64 */
};

extern const struct curve curves[];
extern const unsigned nr_curves;

double curve_rate(const struct curve *curve, unsigned threads);

/* The best rate that at most @max threads have. */
double curve_best(const struct curve *curve, unsigned max);

#endif /* SIM_THREAD_CURVES_H */
