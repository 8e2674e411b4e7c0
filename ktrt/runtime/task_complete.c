/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How tasks are completed: their successors become ready, their parent, group and run
 * learn of it, and codes go to whoever waits.  Does not own records (task.c) nor
 * waiting (task_wait.c).  A code that nobody has waited for becomes the parent's code,
 * unless that has one: codes count in the order in which tasks are complete, and a task's own
 * from when its function returns.
 *
 * Locking: rt.h; E and B are in here.
 */
#include <errno.h>

#include "dependences.h"

void error_keep(int *error, int code)
{
	int none = 0;

	if (code && (at_peek(error) || !at_cas(error, &none, code)))
		ktrt_code_drop(code);
}

int error_take(int *error)
{
	return at_peek(error) ? at_swap(error, 0) : 0;
}

void task_leave_group(struct ktrt_group *group)
{
	if (at_sub(&group->live, 1) == LIVE_WAITED + 1)
		signal_give(&group->wake);
}

/* Queue the tasks that became ready, but keep one that this worker runs next. */
static void take_ready(struct worker *w, struct ready *ready,
		       struct ktrt_task **next)
{
	struct ktrt_task *task = ready->first, *after;

	for (; task; task = after) {
		after = task->next;
		if (likely(w && !*next &&
			   !(task->flags &
			     (TASK_NODE_QUEUE | TASK_TURNS | TASK_UNDEFERRED))))
			*next = task;
		else if (turns_settle(task))
			task_ready(w, task);
	}
}

/* Subtract @nr children.  Return: whether that completes the parent. */
static inline bool parent_less(struct worker *w, struct ktrt_task *parent,
			       unsigned nr)
{
	uint64_t live;

	/* The parent's body is on this thread's stack: uncount the child without an atomic operation. */
	if (w && w->current == parent) {
		parent->spawned -= nr;
		return false;
	}
	live = at_sub(&parent->live, nr) - nr;
	if (likely((uint32_t)live))
		return false;
	if (live & LIVE_WAITED)
		signal_give(&parent->wake);
	return !live;
}

int task_be_skipped(void *arg)
{
	return -ECANCELED;
}

/* Several threads may do this at once, because of different data. */
void task_spoil(struct ktrt_task *task)
{
	if (at_peek(&task->flags) & TASK_ALWAYS)
		at_or(&task->flags, TASK_SPOILT);
	else
		at_poke(&task->func, task_be_skipped);
}

/*
 * Report the task's code to those that wait before tasks are skipped because of it, so that
 * it is the first code.
 */
static void __attribute__((noinline))
task_failed(struct ktrt_task *task, struct ktrt_task *node)
{
	error_keep(task->group ? &task->group->error
			       : &task->parent->child_error,
		   task->error);
	if (!at_peek(&rt.failures))
		at_store(&rt.failures, 1);
	if (node)
		graph_node_failed(node);
}

struct ktrt_task *task_complete(struct worker *w, struct ktrt_task *task)
{
	struct ktrt_task *next = NULL, *parent, *node;
	struct ready ready;

	do {
		parent = task->parent;
		node = unlikely(task->flags & TASK_FOR_NODE) ? task->of : NULL;
		if (unlikely(task->child_error))
			error_keep(&task->error, task->child_error);
		if (unlikely(task->error))
			task_failed(task, node);
		if (task->nr_access) {
			ready_init(&ready);
			deps_done(w, task, &ready);
			take_ready(w, &ready, &next);
		}
		if (task->group)
			task_leave_group(task->group);
		task_free(w, task);
		if (unlikely(node) && !graph_node_complete(w, node, &next))
			break;
		task = parent;
	} while (parent && parent_less(w, parent, 1));
	return next;
}

struct ktrt_task *task_sinks_complete(struct worker *w, struct ktrt_task *run,
				      unsigned nr)
{
	return parent_less(w, run, nr) ? task_complete(w, run) : NULL;
}

/* No other thread uses the task any more.  Has it nothing to report but to its parent, whose
 * body is on this thread's stack? */
static inline bool ends_for_parent(const struct worker *w,
				   const struct ktrt_task *task)
{
	return w && task->parent && w->current == task->parent &&
	       !(task->flags & ~TASK_ALWAYS) && !task->nr_access &&
	       !task->group && !(task->error | task->child_error);
}

/* The body has returned a code.  That of a child which it did not wait for may be older, and
 * may be why the body failed. */
static void __attribute__((noinline))
keep_first(struct ktrt_task *task, int error)
{
	error_keep(&task->error, error_take(&task->child_error));
	error_keep(&task->error, error);
}

struct ktrt_task *task_ended(struct worker *w, struct ktrt_task *task,
			     int error)
{
	uint64_t more = task->spawned - task->credited - LIVE_BODY;

	if (unlikely(error))
		keep_first(task, error);
	if (task->domain)
		deps_close(w, task);
	/* Without children and events no other thread changes the count. */
	if (at_load(&task->live) + more == 0) {
		if (unlikely(!ends_for_parent(w, task)))
			return task_complete(w, task);
		task->parent->spawned--;
		pool_put(&rt.tasks, &w->tasks, task);
		return NULL;
	}
	if (at_add(&task->live, more) + more == 0)
		return task_complete(w, task);
	return NULL;
}

bool task_is_cancelled(const struct ktrt_task *task)
{
	for (; task; task = task->parent)
		if (task->group && at_peek(&task->group->cancelled))
			return true;
	return false;
}
