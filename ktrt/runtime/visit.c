/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Attached threads that help.  While such a thread waits, or has made more tasks than
 * caches hold, it visits the core of the CPU that it is on: it counts as one of that
 * core's workers and does tasks of its own.  The worker that was there leaves between
 * two tasks, as from any overloaded core, so there are no more threads than CPUs.  The
 * visit ends inside the call, and earlier if other threads' queues hold tasks: the
 * thread does only what it waits for, while a worker does any task.
 *
 * The thread is the program's.  Its stack may be small, and a task that ends the thread
 * ends what the program does there.  So it does only tasks whose functions are known to
 * be brief: workers returned from them soon.  It is not bound to the CPU, nor cancelled
 * in the middle of a task.  UMT watches it as long as it visits, so that a worker comes
 * if it blocks.
 *
 * Behaves badly where the kernel moves the thread to another CPU.  The thread notices only
 * after VISIT_TASKS tasks; until then two threads share that CPU.
 *
 * Does not own the state of cores (park.c), nor which of them a task wakes (wake.c).
 *
 * Locking: rt.h; no lock is held here.
 */
#include <errno.h>

#include "func_kinds.h"

/* After so many tasks a visitor looks whether it should stay. */
#define VISIT_TASKS 64

/* ---- whether it may ---- */

static size_t worker_stack_bytes(void)
{
	size_t bytes = rt.options.stack_bytes;
	pthread_attr_t attr;

	if (bytes)
		return bytes;
	pthread_attr_init(&attr);
	pthread_attr_getstacksize(&attr, &bytes);
	pthread_attr_destroy(&attr);
	return bytes;
}

/* Above ->stack_least seven eighths of what a worker has are left. */
static void read_stack(struct worker *w)
{
	size_t size = 0, needed = worker_stack_bytes() / 8 * 7;
	pthread_attr_t attr;
	void *low = NULL;

	w->stack_least = w->stack_end = UINTPTR_MAX;
	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	if (size <= needed)
		return;
	w->stack_least = (uintptr_t)low + needed;
	w->stack_end = (uintptr_t)low + size;
}

/* Not where a program has its own stacks, either. */
static bool stack_suffices(struct worker *w)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (unlikely(!w->stack_end))
		read_stack(w);
	return here >= w->stack_least && here < w->stack_end;
}

static struct core *core_to_visit(struct worker *w)
{
	struct core *core = w->core ? NULL : core_below(w);

	if (!core || at_peek(&core->visitor) || !stack_suffices(w))
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
	at_store(&core->arriving, 0);
	rouse_leader();
	worker_monitor(w, true);
	return true;
}

bool visit_begin(struct visit *visit, struct worker *w)
{
	struct core *core = core_to_visit(w);

	return core && begin_at(visit, w, core);
}

/* Return: a worker comes. */
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
	/* Outside of calls the thread does none at once. */
	at_store(&w->deque.plenty, 0);
	at_store(&w->left, NULL);
	worker_monitor(w, false);
	park_arrive_not(core, w);
	at_store(&core->visitor, NULL);
	comes = leave_to_worker(w, core);
	pthread_setcancelstate(visit->cancel_state, NULL);
	return comes;
}

/* It has searched, so the leader need not wait for that.  As soon as the task is queued
 * it may be gone. */
void visit_leave(struct worker *w, struct ktrt_task *task)
{
	if (w->core) {
		at_store(&w->left, task);
		search_is_due(w);
	}
	task_ready(w, task);
}

/* ---- helping ---- */

/* One that went in the middle of a task has precedence. */
static bool may_stay(struct worker *w, unsigned nr)
{
	if (at_peek(&w->core->nr_suspended))
		return false;
	return nr % VISIT_TASKS ||
	       (core_below(w) == w->core && !sched_work_beside(w));
}

static struct ktrt_task *take_awaited(struct worker *w, struct ktrt_task *above,
				      const struct ktrt_group *group)
{
	return visit_accept(w, group ? search_group(w, group)
				     : sched_take_below(w, above));
}

static void help_below(struct worker *w, struct ktrt_task *task,
		       struct ktrt_task *above, const struct ktrt_group *group)
{
	unsigned nr = 0;

	do {
		task_help(w, task, group ? NULL : above);
		if (unlikely(at_peek(&rt.watching) != at_peek(&w->umt)))
			worker_monitor(w, true);
		task = may_stay(w, ++nr) ? take_awaited(w, above, group) : NULL;
	} while (task);
}

bool visit_help(struct worker *w, struct ktrt_task *above,
		const struct ktrt_group *group)
{
	struct visit visit __attribute__((cleanup(visit_left))) = { NULL, 0 };
	struct ktrt_task *task;
	struct core *core;

	if (above->flags & TASK_RUN || !sched_work_visible())
		return false;
	core = core_to_visit(w);
	if (!core)
		return false;
	task = take_awaited(w, above, group);
	if (!task)
		return false;
	if (!begin_at(&visit, w, core)) {
		task_ready(w, task);
		return false;
	}
	help_below(w, task, above, group);
	return !visit_end(&visit);
}
