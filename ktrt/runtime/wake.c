/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Chooses the worker that a task wakes: one of an idle core.  Does not own the state of
 * cores, nor putting workers there (park.c).
 *
 * Locking: rt.h; here no lock is held.
 */
#include "rt.h"

/* Idle cores that one wakeup tries. */
#define WAKE_TRIES 64

/*
 * UMT does not report cores whose workers block while other cores are idle.  So whoever
 * gives away the last idle core polls a few cores, and the leader polls all of them.
 */
static void poll_for_blocked(struct worker *w, unsigned from)
{
	for (unsigned i = 0; i < 8 && i < rt.nr_cores; i++) {
		struct core *core = &rt.cores[(from + i) % rt.nr_cores];

		if (core_ready(core) > 0 || at_peek(&core->arriving))
			continue;
		if (!sched_work_visible())
			return;
		count_search();
		if (park_dispatch(core, true))
			count_up(&w->counts.replaced);
		else
			at_sub(&rt.idlers, IDLERS_SEARCH);
	}
}

WAKE_PATH struct core *core_below(struct worker *w)
{
	int cpu = w->on_cpu ? (int)at_peek(w->on_cpu) : sched_getcpu();
	int index;

	if (likely(w->below && w->below->cpu == cpu))
		return w->below;
	index = cpu >= 0 && cpu < rt.nr_cpus ? rt.core_of_cpu[cpu] : -1;
	w->below = index >= 0 ? &rt.cores[index] : NULL;
	return w->below;
}

WAKE_PATH bool wake_below(struct worker *w)
{
	struct core *core;

	if (w->lent) {
		w->lent = false;
		return true;
	}
	core = w->core ? NULL : core_below(w);
	if (!core || !sched_work_visible())
		return false;
	/* The core's worker is not idle and tasks are queued, so the worker needs the CPU. */
	if (!at_load_seq(mask_flag(rt.idle, core->index)))
		return true;
	count_search();
	if (!park_dispatch(core, false)) {
		sched_found(w);
		return false;
	}
	count_up(&w->counts.wakeups);
	rouse_leader();
	return true;
}

WAKE_PATH bool wake_to_hand(struct worker *w)
{
	struct core *core = core_below(w);

	if (unlikely(!core || !park_hand(core, w)))
		return false;
	w->lent = true;
	count_up(&w->counts.wakeups);
	rouse_leader();
	if (rt_counts() && !idle_cores())
		poll_for_blocked(w, core->index + 1);
	return true;
}

/* Wake a worker for a task.  If an attached thread made it and will wait, try the core that
 * the thread runs on first; if the thread continues, try that core last. */
static bool wake_for(struct worker *w, unsigned *woken)
{
	unsigned from = at_peek(&rt.idle_hint), tried = 0, pass, index;
	struct core *below = w && !w->core ? core_below(w) : NULL;
	unsigned own = below ? below->index : rt.nr_cores;

	*woken = own;
	if (below && w->lone && park_dispatch(below, false)) {
		w->lent = true;
		return true;
	}
	for (pass = 0; pass < 2 && tried < WAKE_TRIES; pass++, from = 0) {
		index = mask_next(rt.idle, from, rt.nr_cores);
		for (; index < rt.nr_cores && tried < WAKE_TRIES; tried++) {
			*woken = index;
			if ((index != own || pass) &&
			    park_dispatch(&rt.cores[index], false))
				return true;
			index = mask_next(rt.idle, index + 1, rt.nr_cores);
		}
	}
	/* The next search begins behind the last core that was checked. */
	at_poke(&rt.idle_hint, index < rt.nr_cores ? index : 0);
	return false;
}

void wake_worker(struct worker *w)
{
	unsigned index;

	if (!wake_for(w, &index)) {
		at_sub(&rt.idlers, IDLERS_SEARCH);
		return;
	}
	at_poke(&rt.idle_hint, index + 1 < rt.nr_cores ? index + 1 : 0);
	if (w)
		count_up(&w->counts.wakeups);
	rouse_leader();
	if (w && rt_counts() && !idle_cores())
		poll_for_blocked(w, index + 1);
}
