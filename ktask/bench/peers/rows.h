/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Samples, and the rows that are printed from them.
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <stddef.h>

#include "bench/common/stats.h"

/* One peer in one case. */
struct row {
	const char *case_name;
	const char *title; /* of the case, for people */
	const char *peer;
	const char *note; /* or NULL */
	unsigned threads;
	size_t chunk; /* chosen; 0 where the peer has none */
	size_t chunk_bytes; /* the same, for memory */
	size_t bytes; /* that one run handles; 0 for items */
	unsigned nr_samples;
	const double *samples; /* seconds, by round; owned by the results */
	struct stats seconds; /* of these */
	double cpu_seconds; /* median */
	double tail_seconds; /* median; below 0 where not known */
	double mean_chunk_seconds;
};

/* A figure that is no comparison of peers: a latency, a size. */
struct figure {
	const char *name; /* in JSON, with the unit at its end */
	const char *title;
	const char *peer; /* or NULL: libktask */
	double value;
	const char *unit;
};

#define MAX_ROWS 64
#define MAX_FIGURES 48

struct results {
	size_t size_bytes;
	unsigned threads;
	unsigned rounds;
	double others_cpus; /* that other processes kept busy */
	unsigned nr_rows;
	unsigned nr_figures;
	struct row rows[MAX_ROWS];
	struct figure figures[MAX_FIGURES];
};

/*
 * The new last one, with its samples copied and their statistics; the tables
 * are large enough for all there is.
 */
struct row *results_row(struct results *results, const double *seconds,
			unsigned nr);
void results_free(struct results *results);
void results_figure(struct results *results, const char *name,
		    const char *title, const char *peer, double value,
		    const char *unit);

/* report.c */
void report_print(const struct results *results);
/* 0 or an errno; "-" is standard output. */
int report_json(const struct results *results, const char *path);

#endif /* BENCH_ROWS_H */
