/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Attached threads that help.  While such a thread waits, or has made more tasks than
 * caches hold, it visits the core of the CPU on which it runs: it counts as one of that
 * core's workers and runs its own tasks.  The worker of that core leaves it between two
 * tasks, as any overloaded core, so there are no more threads than CPUs.  The visit ends
 * inside the call, or earlier if other threads' queues have tasks that it does not wait for: a
 * worker runs any task.
 *
 * The thread belongs to the program.  Its stack may be small, and a task that ends the
 * thread ends the program's own work there.  So the thread runs only tasks whose functions
 * are known to be brief: workers returned from them soon.  It is not bound to the CPU, nor
 * cancelled in the middle of a task.  UMT monitors it during the visit, so that a worker
 * comes if it blocks.  That takes two system calls, so UMT does so only once the thread has
 * done a task, 64 nodes of a graph or a chunk of a loop; before that a core without workers
 * that UMT sees counts as one that a worker was woken for.
 *
 * Behaves badly if the kernel moves the thread to another CPU in the middle of a task.  The
 * thread notices that after the task, or after some chunks of a loop; until then two threads
 * share the new CPU, and a worker that is suspended on the old core waits.  If the task waits
 * for others, or for a loop inside it, the thread stays until that has ended, and does the
 * loop in parts of one chunk.  If it blocks before UMT monitors it, no worker comes for its
 * core until it goes on, or until no task has begun anywhere for 20 ms (break_stall()).
 *
 * Does not own the state of cores (park.c), nor which of them a task wakes (wake.c).
 *
 * Locking: rt.h; no lock is held here.
 */
#include <errno.h>

#include "func_kinds.h"

/* A visitor checks after so many tasks whether other queues hold tasks. */
#define VISIT_TASKS 64

/* ---- whether it may ---- */

static struct core *core_to_visit(struct worker *w)
{
	struct core *core = w->core ? NULL : core_below(w);

	if (!core || at_peek(&core->visitor))
		return NULL;
	if (unlikely(!w->stack_least))
		worker_read_stack(w);
	if (!stack_suffices(w))
		return NULL;
	return core;
}

/* ---- visits ---- */

static bool begin_at(struct visit *visit, struct worker *w, struct core *core)
{
	struct worker *nobody = NULL;

	if (!at_cas(&core->visitor, &nobody, w))
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &visit->cancel_state);
	visit->w = w;
	w->lone = false;
	park_arrive(core);
	at_poke(&w->core, core);
	/* Otherwise nobody may believe UMT, which does not see the thread yet. */
	if (!at_load(&rt.watching))
		at_store(&core->arriving, 0);
	rouse_leader();
	return true;
}

void visit_be_seen(struct worker *w)
{
	if (likely(at_peek(&rt.watching) == at_peek(&w->umt)))
		return;
	worker_monitor(w, true);
	at_store(&w->core->arriving, 0);
}

bool visit_begin(struct visit *visit, struct worker *w)
{
	struct core *core = core_to_visit(w);

	return core && begin_at(visit, w, core);
}

/* Return: whether a worker takes over the core. */
static bool leave_to_worker(struct worker *w, struct core *core)
{
	if (!at_peek(&core->nr_suspended) && !sched_work_visible())
		return false;
	count_search();
	if (park_dispatch(core, false))
		return true;
	sched_found(w);
	return false;
}

bool visit_end(struct visit *visit)
{
	struct worker *w = visit->w;
	struct core *core;
	bool comes;

	if (!w)
		return false;
	core = w->core;
	visit->w = NULL;
	/* Outside of calls the thread has no core, and nothing may read the core through
	 * w->fast. */
	w->fast = NULL;
	at_store(&w->left, NULL);
	if (at_peek(&w->umt))
		worker_monitor(w, false);
	else
		at_store(&core->arriving, 0);
	park_arrive_not(core, w);
	at_store(&core->visitor, NULL);
	comes = leave_to_worker(w, core);
	pthread_setcancelstate(visit->cancel_state, NULL);
	return comes;
}

/* The thread counts as having searched, so that the leader does not wait for it.  take_left_by()
 * relies on the order of the stores. */
static void note_left(struct worker *w, const struct ktrt_task *task,
		      uint32_t left_by)
{
	at_store(&w->left_by, left_by);
	at_store(&w->left, task);
	w->left_for = w->current;
	search_is_due(w);
}

/* Outside of tasks a thread without a core need not have it done sooner. */
void visit_note(struct worker *w, const struct ktrt_task *task)
{
	if (worker_is_inside(w))
		note_left(w, task, task->left_by);
}

/* Leave the task to workers.  Once queued, it may be gone at any time. */
void visit_leave(struct worker *w, struct ktrt_task *task)
{
	at_poke(&w->helps, false);
	if (!worker_is_inside(w)) {
		task_ready(w, task);
		return;
	}
	note_left(w, task, w->slot + 1);
	if (likely(node_queue_leave(node_queue_of(w, task), task, w)))
		sched_notify(w);
	else
		task_ready(w, task);
}

/* What was left for a task that is over, or further down on the stack, is no reason not to
 * search. */
bool visit_left_stays(struct worker *w)
{
	const struct ktrt_task *left = at_peek(&w->left);

	if (w->left_for != w->current ||
	    at_peek(&left->left_by) != at_peek(&w->left_by)) {
		at_store(&w->left, NULL);
		return false;
	}
	search_is_due(w);
	return true;
}

/* ---- helping ---- */

bool visit_is_over(struct worker *w)
{
	const struct core *core = w->core;

	return core && (at_peek(&core->nr_suspended) || core_below(w) != core);
}

/* Are tasks queued for which the thread does not wait?  A worker should do these.  If it
 * waits for a group any task counts, the group's own as well, so it may leave too soon. */
static bool others_wait(struct worker *w, struct ktrt_task *above,
			const struct ktrt_group *group)
{
	return group ? sched_work_beside(w) : steal_leaves_others(w, above);
}

static bool may_stay(struct worker *w, unsigned nr, struct ktrt_task *above,
		     const struct ktrt_group *group)
{
	return !visit_is_over(w) &&
	       (nr % VISIT_TASKS || !others_wait(w, above, group));
}

static struct ktrt_task *take_awaited(struct worker *w, struct ktrt_task *above,
				      const struct ktrt_group *group)
{
	return visit_accept(w, group ? search_group(w, group)
				     : sched_take_below(w, above));
}

/* What others do may make more ready. */
static struct ktrt_task *await_more(struct worker *w, struct ktrt_task *above,
				    const struct ktrt_group *group)
{
	struct ktrt_task *task = take_awaited(w, above, group);

	if (task || group || steal_leaves_others(w, above))
		return task;
	return visit_accept(w, task_spin(w, above));
}

static void help_below(struct worker *w, struct ktrt_task *task,
		       struct ktrt_task *above, const struct ktrt_group *group)
{
	unsigned nr = 0;

	do {
		if (nr)
			visit_be_seen(w);
		task_help(w, task, group ? NULL : above);
		task = may_stay(w, ++nr, above, group)
			       ? await_more(w, above, group)
			       : NULL;
	} while (task);
}

bool visit_may_do(struct worker *w, const struct ktrt_task *task)
{
	if (!w->core || visit_is_over(w) || !visitor_may_run(task))
		return false;
	visit_be_seen(w);
	return true;
}

void visit_continue(struct visit *visit, struct ktrt_task *above,
		    const struct ktrt_group *group)
{
	struct ktrt_task *task = await_more(visit->w, above, group);

	if (task)
		help_below(visit->w, task, above, group);
}

bool visit_help(struct worker *w, struct ktrt_task *above,
		const struct ktrt_group *group)
{
	struct visit visit __attribute__((cleanup(visit_left))) = { NULL, 0 };
	struct ktrt_task *task;
	struct core *core;

	if (!sched_work_visible())
		return false;
	core = core_to_visit(w);
	if (!core) {
		at_poke(&w->helps, false);
		return false;
	}
	task = take_awaited(w, above, group);
	if (!task)
		return false;
	if (!begin_at(&visit, w, core)) {
		task_ready(w, task);
		return false;
	}
	at_poke(&w->helps, true);
	help_below(w, task, above, group);
	return !visit_end(&visit);
}
