/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One line of a table of times.
 */
#ifndef BENCH_COMMON_MEDIAN_ROW_H
#define BENCH_COMMON_MEDIAN_ROW_H

/* The median in ms, and how many times as fast as @plain by rounds; NULL: as none. */
void print_median_row(const char *name, const double *seconds, unsigned nr,
		      const double *plain);

#endif /* BENCH_COMMON_MEDIAN_ROW_H */
