/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * heat's graph of tasks in other runtimes.  A peer owns nothing but the tasks
 * and their order: what they do is heat's own code, called through here.
 *
 * The tasks, by sweep and block:
 *   block	after the north and west one of this sweep, after itself, south
 *		and east of the sweep before; in a sweep with a checkpoint it
 *		also writes the block, between that checkpoint's begin and seal
 *   begin	opens the checkpoint; after the begin before, and the seal of the
 *		last but one
 *   seal	makes it whole; after all its blocks and the seal before
 */
#ifndef BENCH_APPS_PEER_H
#define BENCH_APPS_PEER_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peer; /* the plate and its checkpoints */

struct plan {
	struct peer *peer;
	unsigned rows, cols; /* in blocks */
	unsigned sweeps, every; /* every: 0: no checkpoints */
	unsigned workers;
};

static inline bool plan_writes(const struct plan *plan, unsigned sweep)
{
	return plan->every && sweep % plan->every == 0;
}

/* What the tasks do; any thread.  Errors are kept for the end, and told. */
void peer_block(struct peer *peer, unsigned sweep, unsigned row, unsigned col);
void peer_begin(struct peer *peer, unsigned sweep);
void peer_seal(struct peer *peer, unsigned sweep);

/* peer_run - what each peer is: sweeps 1 to plan->sweeps as tasks, and wait */
void peer_run(const struct plan *plan);

#ifdef __cplusplus
}
#endif

#endif /* BENCH_APPS_PEER_H */
