/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a handful of samples says.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

struct stats {
	double median;
	double mean;
	double stddev_pct;
};

/* Sorts the samples. */
struct stats stats_of(double *samples, unsigned nr);

/* A copy to sort; aborts without memory. */
double *stats_copy(const double *samples, unsigned nr);

/*
 * The median of a[i] / b[i]: what the machine does to one round it does to
 * both, so that this varies less than the ratio of the medians.
 */
double median_ratio(const double *a, const double *b, unsigned nr);

#endif /* BENCH_STATS_H */
