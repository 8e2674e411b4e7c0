/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Internal to engine/: what context.c asks of helpers.c.
 */
#ifndef KTASK_ENGINE_HELPERS_H
#define KTASK_ENGINE_HELPERS_H

#include "engine/context.h"

/* kt_helpers_reset - a group that has submitted nothing */
static inline void kt_helpers_reset(struct kt_helpers *helpers)
{
	helpers->nr_used = 0;
	helpers->wanted = 0;
	helpers->chunks = 0;
	helpers->units = 0;
	helpers->cpu_ns = 0;
	helpers->largest_chunk = 0;
	helpers->threads = 0;
	helpers->lent = 0;
}

/*
 * kt_helpers_cancel - take back all that no helper has begun
 *
 * Return: true if some are left, to be drained.
 */
bool kt_helpers_cancel(struct kt_context *ctx, struct kt_helpers *helpers);

/* kt_helpers_drain - the same, and wait for those that have begun, one at a
 * time */
void kt_helpers_drain(struct kt_context *ctx, struct kt_helpers *helpers);

/* kt_helpers_units - done by a group so far; any thread */
uint64_t kt_helpers_units(const struct kt_helpers *helpers);

/* kt_helpers_running - is one of them in a chunk?  Any thread. */
bool kt_helpers_running(const struct kt_helpers *helpers);

#endif /* KTASK_ENGINE_HELPERS_H */
