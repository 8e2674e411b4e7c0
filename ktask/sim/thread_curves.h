/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Rates at which jobs are done, by the number of their threads.
 *
 * Rates are relative.  They are linear between the points of a curve and from 0 to the
 * first point, and constant after the last one.
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
