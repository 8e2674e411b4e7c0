/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a handful of samples says.
 */
#ifndef KTASK_CLI_SAMPLE_STATS_H
#define KTASK_CLI_SAMPLE_STATS_H

struct stats {
	double least;
	double median;
	double mean;
	double stddev_pct; /* of the sample (n - 1), in percent of the mean */
};

/** stats_of - @nr >= 1 samples; they are sorted in place */
struct stats stats_of(double *samples, unsigned nr);

#endif /* KTASK_CLI_SAMPLE_STATS_H */
