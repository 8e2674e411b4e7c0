/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Groups of tasks (group.c), and codes that stand for objects (error_codes.c).
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_GROUP_H
#define RUNTIME_GROUP_H

#include <ktask/runtime.h>

#include "runtime_state.h"

/* A late signal may meet a group that is free, so @wake must not be where a
 * free record has its links. */
struct ktrt_group {
	CACHE_ALIGNED struct record
		unused; /* while it is free: record_pool.h */
	uint64_t live; /* tasks, LIVE_WAITED; A */
	uint32_t wake; /* A */
	int error; /* A */
	uint32_t cancelled; /* A */
	uint32_t starts; /* rt.starts when it was made; constant */
};

/* ---- group.c ---- */

/*
 * As ktrt_run().  @takes_part: the caller, if it is a worker or an attached thread that has a
 * core, does the task itself, and what that makes.
 */
int group_run(ktrt_func func, void *arg, bool takes_part);
/* How much memory is mapped for groups. */
size_t groups_bytes(void);
/* In the child: groups of the parent are never given back. */
void groups_after_fork(void);

/* Was the group made by the runtime that runs now, and not by one that has ended, or in
 * the parent of a fork?  Called by threads of the runtime. */
static inline bool group_is_current(const struct ktrt_group *group)
{
	return group->starts == rt.starts;
}

/* ---- error_codes.c ---- */

/* A fork holds the lock of the table, so that the child gets a consistent copy. */
void codes_before_fork(void);
void codes_after_fork(void);

#endif /* RUNTIME_GROUP_H */
