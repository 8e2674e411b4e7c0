/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A peer: one way to do a job with several threads.
 *
 * One file per peer, each ending in one const descriptor.  A peer knows how
 * to share work out and nothing of what the work is; cases.c knows the work
 * and nothing of the peers.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Work on units [start, end); called by several threads at once. */
typedef void (*peer_work)(size_t start, size_t end, void *arg);

struct peer_job {
	size_t nr_units;
	size_t chunk_units; /* what one call of work gets; see peer.chunked */
	unsigned threads; /* with the caller; what start() was told */
	peer_work work;
	void *arg;
	/* The same work as an operation of libktask, or NULL; bytes from addr. */
	const char *operation;
	void *addr;
	size_t len;
};

struct peer {
	const char *name;
	/* Does chunk_units matter to it?  It then gets the best of several. */
	int chunked;
	/* Makes the threads; 0 or an errno. */
	int (*start)(unsigned threads);
	/* 0 or an errno. */
	int (*run)(const struct peer_job *job);
	void (*stop)(void);
};

extern const struct peer peer_plain; /* no threads: one call does it all */
extern const struct peer peer_ktask_one; /* libktask, max_threads 1 */
extern const struct peer peer_ktask;
extern const struct peer peer_static;
extern const struct peer peer_openmp;
extern const struct peer peer_tbb;

#ifdef __cplusplus
}
#endif

#endif /* BENCH_PEER_H */
