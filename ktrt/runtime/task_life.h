/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What happens to a task: it is made, run, completed and awaited.
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_TASK_LIFE_H
#define RUNTIME_TASK_LIFE_H

#include <ktask/runtime.h>

#include "runtime_state.h"
#include "task_record.h"
#include "worker.h"

/* ---- task.c ---- */

/* The calling thread, if it may make tasks; else NULL. */
static inline struct worker *current_worker(void)
{
	struct worker *w = self_worker;

	return w && likely(rt_runs()) ? w : NULL;
}

/* Attributes of whatever version, checked: 0, -EINVAL, -E2BIG */
int task_read_attr(struct ktrt_attr *own, const struct ktrt_attr *attr);
/* All of them but dependences and the copy of the argument. */
void task_take_attr(struct ktrt_task *task, const struct ktrt_attr *attr);
struct ktrt_task *task_new(struct worker *w, ktrt_func func, void *arg);

/* A record as that of a task of @parent which is not ready yet. */
static inline void task_renew(struct ktrt_task *task, struct ktrt_task *parent,
			      ktrt_func func, void *arg)
{
	task->func = func;
	task->arg = arg;
	/* Thieves may read a record that is used anew. */
	at_poke(&task->parent, parent);
	at_poke(&task->nesting, parent ? parent->nesting + 1 : 0);
	at_poke(&task->group, NULL);
	task->flags = 0;
	task->priority = 0;
	task->spawned = task->credited = 0;
	task->live = LIVE_BODY;
	task->error = task->child_error = 0;
	task->domain = NULL;
	task->nr_access = 0;
	task->node = -1;
}

void task_free(struct worker *w, struct ktrt_task *task);
/* Dependences are met: put it where it is found. */
void task_ready(struct worker *w, struct ktrt_task *task);

/* ---- task_run.c ---- */

/* Run a task.  Return: a task that became ready and is best run next, or NULL. */
struct ktrt_task *task_run(struct worker *w, struct ktrt_task *task);
/* The same, and notes whether its function is brief. */
struct ktrt_task *task_run_timed(struct worker *w, struct ktrt_task *task);
/*
 * Run a task with a new record, in the middle of its parent.  If the task is complete when
 * @func has returned, it never counts as a child, and its record becomes w->blank.  Else
 * it counts from then on.  What it makes ready is queued.
 */
void task_run_inside(struct worker *w, struct ktrt_task *task, ktrt_func func,
		     void *arg);

/* A record for task_run_inside() or task_call(); NULL: no memory. */
static inline struct ktrt_task *task_take_blank(struct worker *w)
{
	struct ktrt_task *task = w->blank, *parent = w->current;

	if (unlikely(!task)) {
		task = task_new(w, NULL, NULL);
		/* One that was lent to an attached thread's task stays with the thread. */
		if (task)
			task->flags = 0;
		return task;
	}
	w->blank = NULL;
	at_poke(&task->parent, parent);
	at_poke(&task->nesting, parent->nesting + 1);
	return task;
}

/*
 * Call a function in the middle of a task as if it were one: it may make tasks and wait for
 * them, and has waited when it returns.  But it counts as none.  Only external events may
 * be outstanding; then @task has a group (group.c).  Return: the code of the function.
 */
int task_call(struct worker *w, struct ktrt_task *task, ktrt_func func,
	      void *arg);

/* ---- task_complete.c ---- */

/*
 * The task's function has returned.  Return: a task that has become ready and is best
 * run now, or NULL.
 */
struct ktrt_task *task_ended(struct worker *w, struct ktrt_task *task,
			     int error);
/* A run has so many children less: nodes for which nothing waits.  Return: as
 * task_ended(). */
struct ktrt_task *task_sinks_complete(struct worker *w, struct ktrt_task *run,
				      unsigned nr);
/* A task of the group is complete, or was not made. */
void task_leave_group(struct ktrt_group *group);
/* Nothing is left of it: its successors, its parent, its group learn it. */
struct ktrt_task *task_complete(struct worker *w, struct ktrt_task *task);
bool task_is_cancelled(const struct ktrt_task *task);
/* The data of the task is spoilt: it fails with -ECANCELED when it becomes ready, or, with
 * KTRT_ALWAYS, runs and may ask ktrt_cancelled(). */
void task_spoil(struct ktrt_task *task);
/* In place of the function of a task that is skipped. */
int task_be_skipped(void *arg);
/* Return the first code, and forget it. */
int error_take(int *error);
/* Keep the code if it is the first one; otherwise drop it. */
void error_keep(int *error, int code);

/* ---- task_wait.c ---- */

/* Do it in the middle of another one, and what that makes ready if @above waits
 * for it, too. */
void task_help(struct worker *w, struct ktrt_task *task,
	       const struct ktrt_task *above);
/* Sleep until a task that the caller made with TASK_UNDEFERRED may be done.  @ready: it
 * lacks only its turns. */
void task_await_met(struct worker *w, struct ktrt_task *task, bool ready);
/*
 * Spin until the children have ended elsewhere, or a descendant can be taken.
 *
 * Return: the task; NULL: they ended, or another worker should have the CPU.
 */
struct ktrt_task *task_spin(struct worker *w, struct ktrt_task *task);
/* Children of it that are not complete; by its own thread. */
int32_t task_outstanding(const struct ktrt_task *task);
/* Wait for them, helping; the first code. */
int task_wait(struct worker *w, struct ktrt_task *task);

/* ---- task_loop.c ---- */

/* Is the task, which is ready and has not begun, a part of a loop?  Then by which function
 * that is done. */
bool loop_has_part(const struct ktrt_task *task, ktrt_func *func);
/* Is the task a call of task_call() in place of a loop's parts?  Then its maker waits for
 * external events by a group that it gets when it adds some. */
bool loop_is_here(const struct ktrt_task *task);

/* ---- proxies.c ---- */

static inline bool task_has_proxies(const struct ktrt_task *task)
{
	return (at_peek(&task->flags) & (TASK_UNDEFERRED | TASK_PROXIES)) ==
	       TASK_PROXIES;
}

/* The record of a proxy is ready: what it waited for in its chain is over. */
void proxy_ready(struct worker *w, struct ktrt_task *record);
/* The task is complete: release all data that it has not released yet. */
void proxies_complete(struct worker *w, struct ktrt_task *task);
/* Must children of the task still wait for data that it names weakly?  Called by a thread
 * that has taken the task and not begun it, or that runs a task below it. */
bool proxies_closed(const struct ktrt_task *task);

#endif /* RUNTIME_TASK_LIFE_H */
