/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Waiting for the children of a task: running them meanwhile, and sleeping when there is
 * none to run.
 *
 * Locking: rt.h.
 */
#include <errno.h>

#include "dependences.h"
#include "func_kinds.h"

int32_t task_outstanding(const struct ktrt_task *task)
{
	return (int32_t)(uint32_t)(at_load(&task->live) + task->spawned -
				   task->credited);
}

#define WAIT_SPINS 2000
/* After so many searches that find only other tasks than descendants, a waiter stops spinning. */
#define WAIT_MISSES 11
/* For so many rounds, some 10 us, it searches often: tasks that depend on each other may be
 * as brief as the pause between two searches. */
#define WAIT_EAGER 512

/* Search in quick succession at first, then every 8 rounds, later every 64. */
static inline bool is_time_to_check(unsigned round)
{
	unsigned most = round < WAIT_EAGER ? 7 : 63;

	return !((round + 1) & (round < most ? round : most));
}

struct ktrt_task *task_spin(struct worker *w, struct ktrt_task *task)
{
	unsigned misses = 0;

	if (unlikely(w->fast))
		short_tasks_rest(w, task);
	for (unsigned i = 0; i < WAIT_SPINS && task_outstanding(task); i++) {
		struct ktrt_task *below;

		cpu_relax();
		if (!is_time_to_check(i))
			continue;
		if (!w->core || !sched_work_visible())
			continue;
		below = sched_take_below(w, task);
		if (below)
			return below;
		/* What others are faster to take is no reason to give up. */
		if (steal_leaves_others(w, task) && ++misses == WAIT_MISSES)
			return NULL;
	}
	return NULL;
}

/* No descendant is left to run: sleep until the last child signals its end. */
static WAKE_PATH void wait_for_signal(struct worker *w, struct ktrt_task *task)
{
	uint64_t more = task->spawned - task->credited + LIVE_WAITED;

	at_poke(&task->wake, (uint32_t)SIGNAL_NONE);
	task->credited = task->spawned;
	if ((uint32_t)(at_add(&task->live, more) + more))
		park_until(w, &task->wake, 0);
	at_sub(&task->live, LIVE_WAITED);
}

void task_help(struct worker *w, struct ktrt_task *task,
	       const struct ktrt_task *above)
{
	do {
		task = task_run(w, task);
		if (unlikely(at_peek(&w->stuck)))
			park_goes_on(w);
	} while (task && task->parent == above && likely(!sched_urgent(w)) &&
		 (likely(!w->outer) || visit_may_do(w, task)));
	if (task)
		task_ready(w, task);
}

/* Check the ends of queues, on a core.  If no thread will come for tasks behind these, search
 * all. */
static struct ktrt_task *take_or_search(struct worker *w,
					struct ktrt_task *above)
{
	struct ktrt_task *task = w->core ? sched_take_below(w, above) : NULL;
	struct wait_filter filter;

	if (task)
		return task;
	filter = filter_for(above, NULL);
	return search_wanted(w, &filter);
}

static WAKE_PATH void __attribute__((noinline))
await_children(struct worker *w, struct ktrt_task *task)
{
	while (task_outstanding(task)) {
		struct ktrt_task *below;

		if (visit_has_left(w)) {
			wait_for_signal(w, task);
			continue;
		}
		/* An attached thread has a core only while it helps. */
		if (!w->core && !w->lent && visit_help(w, task, NULL))
			continue;
		below = w->core ? sched_take_below(w, task) : NULL;
		if (!below && wake_below(w)) {
			wait_for_signal(w, task);
			continue;
		}
		if (!below)
			below = task_spin(w, task);
		if (!below && !task_outstanding(task))
			break;
		if (!below && worker_is_inside(w))
			below = take_or_search(w, task);
		below = visit_accept(w, below);
		if (below)
			task_help(w, below, task);
		else
			wait_for_signal(w, task);
	}
}

/* Most tasks wait for nothing: the loop with its stack frame is a function of its own. */
WAKE_PATH int task_wait(struct worker *w, struct ktrt_task *task)
{
	rank_assert(w == self_worker && task == w->current);
	visit_forget(w);
	if (task_outstanding(task))
		await_children(w, task);
	if (unlikely(task->domain))
		deps_settle(task);
	return unlikely(at_peek(&task->child_error))
		       ? error_take(&task->child_error)
		       : 0;
}

/* ---- waiting for one task's dependences ---- */

static bool is_met(const struct ktrt_task *task)
{
	return at_load(&task->flags) & TASK_MET;
}

static bool spin_until_met(const struct ktrt_task *task)
{
	for (unsigned i = 0; i < WAIT_SPINS && !is_met(task); i++)
		cpu_relax();
	return is_met(task);
}

static void sleep_until_met(struct worker *w, struct ktrt_task *task)
{
	/* This may erase a signal.  TASK_MET is set before the signal is given, so
	 * is_met() sees it then. */
	at_swap(&task->wake, (uint32_t)SIGNAL_NONE);
	if (!is_met(task))
		park_until(w, &task->wake, 0);
}

struct awaiting {
	struct worker *w;
	struct ktrt_task *task; /* NULL: it was met */
};

/* A task that the waiter ran has ended the thread.  @task fails, and becomes ready like
 * any other task. */
static void awaiting_left(struct awaiting *awaiting)
{
	struct ktrt_task *task = awaiting->task;

	if (likely(!task))
		return;
	awaiting->w->current->spawned++;
	task_spoil(task);
	if (at_or(&task->flags, TASK_LEFT) & TASK_MET)
		task_ready(awaiting->w, task);
}

/* Other children may wait for what the caller does later, so it runs none of them unless
 * no thread is left. */
static void await_met(struct worker *w, struct ktrt_task *task, bool turns)
{
	visit_forget(w);
	search_begin(w);
	while (!is_met(task)) {
		struct wait_filter filter = filter_for(w->current, NULL);
		struct ktrt_task *other = NULL;

		if (turns) {
			filter.self = w->current;
			filter.turns = true;
		}
		if (!wake_below(w) && spin_until_met(task))
			break;
		if (worker_is_inside(w) && !visit_has_left(w))
			other = visit_accept(w, search_wanted(w, &filter));
		if (other)
			task_help(w, other, NULL);
		else
			sleep_until_met(w, task);
	}
}

/*
 * A task that the caller runs on its stack while it waits may itself wait for a task that
 * needs one of the turns.  So the caller asks for turns only after its other dependences
 * are over, and from then on runs no task that could wait in this way.
 */
void task_await_met(struct worker *w, struct ktrt_task *task, bool ready)
{
	struct awaiting awaiting
		__attribute__((cleanup(awaiting_left))) = { w, task };

	if (!ready)
		await_met(w, task, false);
	if (unlikely(turns_missing(task))) {
		/* No other thread can reach the task before it asks for turns. */
		at_poke(&task->flags, task->flags & (uint16_t)~TASK_MET);
		if (!turns_take(task))
			await_met(w, task, true);
	}
	awaiting.task = NULL;
}

WAKE_PATH int ktrt_wait(void)
{
	struct worker *w = current_worker();

	if (!w)
		return -ESRCH;
	if (!worker_is_inside(w)) {
		w->lone = w->current->spawned - w->waited == 1;
		w->waited = w->current->spawned;
	}
	return task_wait(w, w->current);
}
