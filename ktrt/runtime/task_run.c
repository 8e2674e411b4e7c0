/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Running tasks: calls their functions, and nodes of graphs one after another.  Does not own
 * which task a worker runs next (task_sched.c), nor how a task ends (task_complete.c).
 *
 * Locking: rt.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "func_kinds.h"
#include "trace.h"

struct guard {
	struct worker *w;
	struct ktrt_task *task, *before;
	bool inside; /* not yet a child of @before */
	int error;
	unsigned
		sinks; /* nodes that were complete, and their run does not know */
};

/* The body did not return: pthread_exit(), or the thread was cancelled. */
static void __attribute__((noinline, cold)) body_left(struct guard *guard)
{
	struct worker *w = guard->w;
	struct ktrt_task *next;

	at_poke(&w->current, guard->before);
	if (guard->inside)
		guard->before->spawned++;
	if (guard->sinks)
		task_sinks_complete(w, guard->task->parent, guard->sinks);
	next = task_ended(w, guard->task, -ECANCELED);
	if (next)
		task_ready(w, next);
}

static inline void leave_guard(struct guard *guard)
{
	if (unlikely(guard->task))
		body_left(guard);
}

/* Groups were cancelled, or tasks are traced; also those that are cancelled. */
static int __attribute__((noinline, cold))
call_checked(struct worker *w, const struct ktrt_task *task, ktrt_func func,
	     void *arg)
{
	if (!(task->flags & TASK_ALWAYS) && task_is_cancelled(task))
		func = task_be_skipped;
	if (rt.trace)
		return trace_call(w, task, known_func(func, arg), func, arg);
	return func(arg);
}

static inline void end_call(struct guard *guard)
{
	struct worker *w = guard->w;

	guard->task = NULL;
	/* In the child of a fork that the body made nothing of this is left. */
	if (unlikely(at_peek(&rt.generation) != w->generation))
		exit(0);
	at_poke(&w->current, guard->before);
}

/* Calls the function; its code. */
static inline int call_guarded(struct guard *guard, ktrt_func func, void *arg)
{
	struct worker *w = guard->w;
	int error = -ECANCELED;

	at_poke(&w->current, guard->task);
	if (likely(!at_peek(&rt.cancels)))
		error = func(arg);
	else
		error = call_checked(w, guard->task, func, arg);
	end_call(guard);
	count_up(&w->counts.tasks);
	guard->error = error;
	return error;
}

static inline int call_task(struct worker *w, struct ktrt_task *task,
			    ktrt_func func, void *arg, bool inside)
{
	struct guard guard __attribute__((
		cleanup(leave_guard))) = { w, task, w->current, inside, 0, 0 };

	return call_guarded(&guard, func, arg);
}

/* No children, events or codes. */
static inline bool is_spent(const struct ktrt_task *task)
{
	return at_load(&task->live) == LIVE_BODY && !task->spawned &&
	       !task->domain && !(task->error | task->child_error);
}

/* And no memory: all as task_new() left it. */
static inline bool is_new(const struct ktrt_task *task)
{
	return is_spent(task) && !task->flags;
}

static inline void keep_blank(struct worker *w, struct ktrt_task *task)
{
	if (unlikely(w->blank))
		task_free(w, task);
	else
		w->blank = task;
}

/* Nodes that may follow each other before their worker takes other tasks. */
#define NODES_IN_TURN 64

/* The worker of a core leaves it to the attached thread that visits it. */
static inline bool must_leave(const struct worker *w)
{
	return unlikely(core_overloaded(w->core)) &&
	       (!w->outer || at_peek(&w->core->nr_suspended));
}

/* May the worker go on with what the last node made ready? */
static inline bool may_continue(const struct worker *w, unsigned nr)
{
	return nr < NODES_IN_TURN && likely(w->core) && !must_leave(w) &&
	       likely(!sched_urgent(w));
}

/* The newest, if it is of the same run. */
static struct ktrt_task *pop_sibling(struct worker *w,
				     const struct ktrt_task *node)
{
	struct ktrt_task *task = pop_own(w);

	if (likely(!task || task->parent == node->parent))
		return task;
	/* There was room for it a moment ago. */
	deque_push(&w->deque, task);
	/* A worker that went to sleep meanwhile has not seen this task. */
	sched_notify(w);
	return NULL;
}

/* Return: as task_run(). */
static struct ktrt_task *sinks_done(struct worker *w, struct guard *guard,
				    struct ktrt_task *run)
{
	unsigned nr = guard->sinks;

	guard->sinks = 0;
	return nr ? task_sinks_complete(w, run, nr) : NULL;
}

/* Of the nodes of a run that an attached thread waits for, each thread times one of so many. */
#define NODES_UNTIMED 64

/*
 * Such a thread does nodes itself if they are brief.  Until a function has a verdict, all of
 * its nodes are timed.  One that is skipped says nothing.
 */
static inline bool is_timed(struct worker *w, const struct ktrt_task *node)
{
	unsigned kind;

	if (unlikely(!w->untimed)) {
		w->untimed = NODES_UNTIMED;
		return !(node->flags & TASK_SPOILT);
	}
	w->untimed--;
	kind = func_kind(node->func);
	return unlikely(kind == FUNC_UNKNOWN || kind == FUNC_BRIEF_ONCE_LONG) &&
	       !(node->flags & TASK_SPOILT);
}

static int __attribute__((noinline))
call_timed(struct guard *guard, const struct ktrt_task *node)
{
	struct timed timed = { node->func, node->arg, 0 };
	int error = call_guarded(guard, time_it, &timed);

	func_classify(timed.func, timed.took_ns < BRIEF_NS);
	return error;
}

static inline int call_node(struct guard *guard, const struct ktrt_task *node,
			    bool timed)
{
	if (unlikely(timed) && is_timed(guard->w, node))
		return call_timed(guard, node);
	return call_guarded(guard, node->func, node->arg);
}

/*
 * Run nodes by means of the record @task, which is mostly as good as new afterwards.  So
 * only one cache line of each node is fetched.  All workers write the run's count, so
 * sinks are counted together at the end: the run has to wait for the last of these nodes
 * anyway.
 */
static struct ktrt_task *run_nodes(struct worker *w, struct ktrt_task *node,
				   struct ktrt_task *task)
{
	struct guard guard __attribute__((
		cleanup(leave_guard))) = { w, NULL, w->current, false, 0, 0 };
	struct ktrt_task *next = node, *run = node->parent, *after;
	/* A single core has everything in its caches. */
	bool shares = rt.nr_cores > 1;
	bool timed = at_peek(&run->parent->flags) & TASK_OUTER;
	unsigned flags = task->flags;

	at_poke(&task->parent, run);
	at_poke(&task->nesting, node->nesting);
	for (unsigned nr = 1; next; nr++) {
		node = next;
		next = NULL;
		task->of = node;
		task->flags =
			(uint16_t)(flags | TASK_FOR_NODE |
				   (node->flags & (TASK_ALWAYS | TASK_SPOILT)));
		guard.task = task;
		if (shares)
			graph_node_fetch(node);
		if (unlikely(call_node(&guard, node, timed) ||
			     !is_spent(task) || flags)) {
			/* The node is not complete, so the run is not. */
			sinks_done(w, &guard, run);
			return task_ended(w, task, guard.error);
		}
		if (node_complete(w, node, &next))
			guard.sinks++;
		if (!may_continue(w, nr))
			break;
		if (!next)
			next = pop_sibling(w, node);
		if (unlikely(w->outer) && next && !visitor_may_run(next))
			break;
	}
	task->flags = 0;
	keep_blank(w, task);
	after = sinks_done(w, &guard, run);
	return next ? next : after;
}

static struct ktrt_task *run_node(struct worker *w, struct ktrt_task *node)
{
	struct ktrt_task *task = w->blank, *next = NULL;

	w->blank = NULL;
	if (unlikely(!task)) {
		task = task_new(w, NULL, NULL);
		/* Nodes do not inherit from whoever waits for them. */
		if (task)
			task->flags &= (uint16_t) ~(TASK_FINAL | TASK_LOANED);
	}
	if (likely(task))
		return run_nodes(w, node, task);
	error_keep(&node->parent->child_error, -ENOMEM);
	graph_node_failed(node);
	if (!graph_node_complete(w, node, &next))
		return next;
	return task_sinks_complete(w, node->parent, 1);
}

WAKE_PATH struct ktrt_task *task_run(struct worker *w, struct ktrt_task *task)
{
	int error;

	if (task->flags & TASK_NODE)
		return run_node(w, task);
	error = call_task(w, task, task->func, task->arg, false);
	return task_ended(w, task, error);
}

/* The task is not as good as new, so it counts as a child from now on. */
static void __attribute__((noinline))
end_inside(struct worker *w, struct ktrt_task *task, int error)
{
	w->current->spawned++;
	task = task_ended(w, task, error);
	if (task)
		task_ready(w, task);
}

static inline void run_inside(struct worker *w, struct ktrt_task *task,
			      ktrt_func func, void *arg)
{
	int error = call_task(w, task, func, arg, true);

	if (unlikely(error || !is_new(task)))
		end_inside(w, task, error);
	else
		keep_blank(w, task);
}

/* An attached thread that visits no core.  The program may cancel it, but not in the middle of
 * a task.  Since ktrt_spawn_begin() it may have been moved to a CPU that is not the runtime's. */
static void __attribute__((noinline))
run_outside(struct worker *w, struct ktrt_task *task, ktrt_func func, void *arg)
{
	struct core *before = w->beside;
	int cancel_state;

	if (unlikely(!at_peek(&w->helps)))
		at_poke(&w->helps, true);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	w->beside = likely(w->below) ? w->below : rt.cores;
	run_inside(w, task, func, arg);
	w->beside = before;
	visit_forget(w);
	pthread_setcancelstate(cancel_state, NULL);
}

void task_run_inside(struct worker *w, struct ktrt_task *task, ktrt_func func,
		     void *arg)
{
	if (likely(w->core))
		run_inside(w, task, func, arg);
	else
		run_outside(w, task, func, arg);
}

int task_call(struct worker *w, struct ktrt_task *task, ktrt_func func,
	      void *arg)
{
	struct guard guard __attribute__((
		cleanup(leave_guard))) = { w, task, w->current, true, 0, 0 };
	int code;

	task->func = func;
	at_poke(&w->current, task);
	code = func(arg);
	end_call(&guard);
	task->func = NULL;
	if (unlikely(task->group || !is_new(task)))
		end_inside(w, task, 0);
	else
		keep_blank(w, task);
	return code;
}

struct ktrt_task *task_run_timed(struct worker *w, struct ktrt_task *task)
{
	struct timed timed = { task->func, task->arg, 0 };
	ktrt_func known = task_func(task);
	int error;

	if (task->flags & TASK_NODE)
		return run_node(w, task);
	error = call_task(w, task, time_it, &timed, false);
	w->foreign_ns += timed.took_ns;
	func_classify(known, timed.took_ns < BRIEF_NS);
	return task_ended(w, task, error);
}
