/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Lists of workers that sleep: of a core, those that idle or gave it away in the middle
 * of a task, and the pool of those that no core needs.
 *
 * Locking: rt.h.  But for the pool all is done under the core's lock.  A worker is on one
 * list at most; whoever takes it off gives it a core and then the signal, under no lock.
 */
#ifndef RUNTIME_CORE_LISTS_H
#define RUNTIME_CORE_LISTS_H

#include "rt.h"

/* One idle worker stays with its core, others are for any core. */
void core_list_idle(struct core *core, struct worker *w);
/* That one, or NULL; */
struct worker *core_take_parked(struct core *core);
/* or one of the pool. */
struct worker *core_take_idle(struct core *core);
struct worker *pool_take_worker(void);
/* It sleeps in the middle of a task. */
void core_list_suspended(struct core *core, struct worker *w);
/* The oldest of these, or NULL. */
struct worker *core_take_suspended(struct core *core);
/* Off the list of idle ones; false: it is not there, as somebody has taken it. */
bool core_unlist(struct core *core, struct worker *w);

#endif /* RUNTIME_CORE_LISTS_H */
