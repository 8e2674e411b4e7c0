/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Has tasks that block early begin while others compute.
 *
 * A worker leaves its core between two tasks if another one is ready there, so that tasks
 * that are in the middle end first.  If all tasks block early and compute afterwards, they
 * do so in step: no task begins until all that have blocked have ended.  Then the core
 * idles, and one task after another is begun by way of the leader, 35 us each.  400 tasks
 * that sleep for 1 ms and compute for 0.1 ms spent a quarter of the time in this way.
 *
 * So the leader counts tasks that blocked soon after their worker was put on an idle core.
 * For each of them a few more tasks of the same function may begin although others are
 * ready: they block while those compute.
 *
 * Behaves badly if tasks of one function block early first and compute at once later: as
 * many as were counted share their core with others.
 *
 * Locking: rt.h.
 */
#include "func_kinds.h"

/* A task that has blocked before has blocked early. */
#define EARLY_NS 100000
#define EARLY_GRANT 4
#define EARLY_MOST 64

void early_note_served(struct core *core, uint64_t now)
{
	ktrt_func func = at_peek(&core->began);
	uint32_t early = EARLY_GRANT;

	leader_assert();
	if (func == at_peek(&core->early_func))
		early += at_peek(&core->early);
	if (now - core->served_ns < EARLY_NS) {
		at_poke(&core->early_func, func);
		at_poke(&core->early, early < EARLY_MOST ? early : EARLY_MOST);
	}
	core->served_ns = now;
}

/* Of two workers that do this at once both may begin one.  A task of another function is queued
 * anew: it loses its place among others of its priority, and the mark of who left it. */
struct ktrt_task *early_take(struct worker *w, ktrt_func func)
{
	struct core *core = w->core;
	uint32_t early = at_peek(&core->early);
	struct ktrt_task *task;

	if (likely(!early) || func != at_peek(&core->early_func) ||
	    func == ktrt_dispatch || at_peek(&core->nr_suspended) ||
	    core_ready(core) <= 1)
		return NULL;
	at_poke(&core->early, early - 1);
	task = sched_take(w);
	if (!task || task_func(task) == func)
		return task;
	task_ready(w, task);
	return NULL;
}
