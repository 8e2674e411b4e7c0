/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Giving way to other tasks in the middle of one.
 *
 * Another worker takes the core for one task.  It is an idle worker, or a new one.  Only if
 * no more threads may be made, the yielding task takes another task onto its own stack.  It
 * cannot continue before that task is done.  So that task must not wait for the yielding
 * one:
 *
 * - A descendant of the yielding task does not: the yielding task is not complete before
 *   its descendants, whoever does them.
 * - Of the other tasks, none is taken whose children would wait for data (proxies.h): what
 *   they wait for may be on this stack.  All others wait, by data and for children, only
 *   for tasks that begin later than they do.  In a circle of tasks, each of which waits for
 *   the next or lies below it on a stack, one would have begun before itself.
 *
 * A task that waits for a group, or in other ways, may still wait for the yielding one.  So
 * tasks that are no descendants are left alone at first.  When a task has yielded in vain
 * many times, it probably waits for one of them.
 *
 * Behaves badly if max_threads threads exist and many of them yield until something
 * happens: each takes one of these tasks onto its stack.
 *
 * Locking: rt.h.
 */
#include <errno.h>

#include "func_kinds.h"

/* After so many yields in a row a task insists. */
#define YIELDS_IN_VAIN 16
/* How long an attached thread sleeps if it found a task that only workers may run. */
#define LEFT_SLEEP_NS 1000000

/* Has the task yielded YIELDS_IN_VAIN times, and no other task was run here? */
static bool count_yield(struct worker *w)
{
	struct yields *yields = &w->yields;
	uint64_t tasks = at_peek(&w->counts.tasks);

	worker_assert_own(w);
	if (yields->by != w->current || yields->tasks != tasks)
		*yields = (struct yields){ w->current, tasks, 0 };
	if (yields->nr == YIELDS_IN_VAIN)
		return true;
	yields->nr++;
	return false;
}

/* No worker is left: run a task here.  Another worker may take what that makes ready. */
static bool do_one_here(struct worker *w, bool insists)
{
	struct yields yields = w->yields;
	struct ktrt_task *task;

	if (visit_has_left(w))
		return false;
	task = sched_take_below(w, w->current);
	if (!task && insists)
		task = search_open(w);
	task = visit_accept(w, task);
	if (!task)
		return false;
	task = task_run(w, task);
	if (task)
		task_ready(w, task);
	yields.tasks = at_peek(&w->counts.tasks);
	w->yields = yields;
	return true;
}

/*
 * An attached thread has found a task that only workers may run.  To the leader the thread
 * seems to work until it sleeps, and no waiting worker is made to run that task.
 */
static void sleep_if_left(struct worker *w)
{
	uint32_t *signal = &w->current->wake;

	if (likely(!at_peek(&w->left)))
		return;
	at_poke(signal, (uint32_t)SIGNAL_NONE);
	park_until(w, signal, LEFT_SLEEP_NS);
}

/*
 * An attached thread that visits no core.  In a task that it does so it takes what that waits for
 * after many yields, or leaves that to workers.  To the leader it seems to work, so no waiting
 * worker is made to run any other task: if nothing has moved since its last yield, it insists.
 */
static void yield_outside(struct worker *w)
{
	bool insists = search_is_due(w);

	if (worker_is_inside(w) && count_yield(w)) {
		if (do_one_here(w, insists))
			return;
		sleep_if_left(w);
	}
	sched_yield();
}

int ktrt_yield(void)
{
	struct worker *w = self_worker;
	bool insists;

	if (!w || !rt_runs())
		return -ESRCH;
	if (!w->core) {
		yield_outside(w);
		return 0;
	}
	if (!core_overloaded(w->core) && !sched_work_visible())
		return 0;
	insists = count_yield(w) && sched_work_visible();
	if (!park_yield(w, insists) && !do_one_here(w, insists) && insists &&
	    !park_yield(w, false))
		sleep_if_left(w);
	return 0;
}
