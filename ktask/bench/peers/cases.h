/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the peers are given to do.
 */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include <stdbool.h>
#include <stdint.h>

#include "peer.h"

#define MAX_CHUNKS 5

struct bench_case {
	const char *name; /* in JSON and for --only */
	const char *title;
	const char *operation; /* libktask's name for it, or NULL */
	bool memory; /* units are blocks of memory, not items */
	size_t chunks[MAX_CHUNKS]; /* units; those that peers may choose from */
	int (*prepare)(const struct bench_case *c); /* untimed; 0 or errno */
	peer_work work;
	void (*finish)(void); /* untimed */
	int thp_advice; /* memory: MADV_HUGEPAGE or MADV_NOHUGEPAGE */
	bool skewed; /* items: does their cost vary? */
};

/* Units of memory are blocks of this many bytes, a huge page. */
#define BLOCK_BYTES ((size_t)2 << 20)

extern const struct bench_case bench_cases[];
extern const unsigned nr_bench_cases;

/* Before anything else; 0 or an errno. */
int cases_init(size_t size_bytes);
void cases_exit(void);

/* The job that a case is, with the threads and chunk of a peer. */
struct peer_job case_job(const struct bench_case *c, unsigned threads,
			 size_t chunk_units);

/* How the last run of a case with items ended. */
struct case_end {
	double tail_seconds; /* between the last two threads to finish */
	double mean_chunk_seconds;
	double longest_chunk_seconds;
	unsigned threads; /* that did at least one chunk */
};

struct case_end case_last_end(void);

#endif /* BENCH_CASES_H */
