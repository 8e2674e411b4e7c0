/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which functions are known to be brief.
 *
 * A maker that runs its tasks itself deadlocks if such a task waits for what the
 * maker does later.  So it only runs tasks whose function is known to be brief:
 * other workers, on their own stacks, returned from it soon.  One long run may mean
 * that the thread lost its CPU, so a function counts as long only after two.
 * ktrt_dispatch() always counts as long.
 *
 * Workers time some of the tasks that others made, and some nodes of graphs that attached
 * threads run.
 *
 * On a single core nobody runs tasks while their maker goes on, and that a function is brief
 * says nothing if it was run later.  So there a maker stands still for its children, and
 * functions are also noted whose tasks were all complete meanwhile (child_limit.c).
 *
 * Locking: there is none.  What is known of a function is one word of rt.funcs, and one of
 * rt.tried, which any worker reads and writes atomically.  Of two that learn at once one
 * counts.
 */
#ifndef RUNTIME_FUNC_KINDS_H
#define RUNTIME_FUNC_KINDS_H

#include "rt.h"

enum { FUNC_UNKNOWN, FUNC_LONG, FUNC_BRIEF_ONCE_LONG, FUNC_BRIEF };

static inline uint64_t *func_known(ktrt_func func)
{
	return &rt.funcs[(uintptr_t)func / 16 % FUNCS_KNOWN];
}

static inline unsigned func_kind(ktrt_func func)
{
	uint64_t known = at_peek(func_known(func));

	if (func == ktrt_dispatch)
		return FUNC_LONG;
	return known >> 2 == (uintptr_t)func ? known & 3 : FUNC_UNKNOWN;
}

static inline bool func_is_brief(ktrt_func func)
{
	uint64_t least = (uint64_t)(uintptr_t)func << 2 | FUNC_BRIEF_ONCE_LONG;

	return at_peek(func_known(func)) - least <= 1;
}

static inline void func_classify(ktrt_func func, bool brief)
{
	unsigned kind = func_kind(func);
	unsigned now = brief			     ? FUNC_BRIEF
		       : kind > FUNC_BRIEF_ONCE_LONG ? FUNC_BRIEF_ONCE_LONG
						     : FUNC_LONG;

	if (now != kind && func != ktrt_dispatch)
		at_poke(func_known(func), (uint64_t)(uintptr_t)func << 2 | now);
}

static inline uint64_t *func_tried(ktrt_func func)
{
	return &rt.tried[(uintptr_t)func / 16 % FUNCS_KNOWN];
}

/* Did tasks of it return while their maker stood still?  Only asked on a single core. */
static inline bool func_is_tried(ktrt_func func)
{
	return at_peek(func_tried(func)) == (uintptr_t)func;
}

static inline void func_note_tried(ktrt_func func)
{
	at_poke(func_tried(func), (uint64_t)(uintptr_t)func);
}

/* May its maker do a task of it at once, before it goes on? */
static inline bool func_suits_maker(ktrt_func func)
{
	return func_is_brief(func) && (rt.nr_cores > 1 || func_is_tried(func));
}

/* Four arguments, and the function that takes them; see ktrt_spawn_args(). */
struct task_args {
	ktrt_func_args func;
	void *args[4];
};

int task_run_args(void *arg);

/* The key under which such a function is known; it is never called by this type. */
static inline ktrt_func args_func(ktrt_func_args func)
{
	return (ktrt_func)(void (*)(void))func;
}

/* The key of a task's function. */
static inline ktrt_func task_func(const struct ktrt_task *task)
{
	const struct task_args *args = task->arg;

	return unlikely(task->func == task_run_args) ? args_func(args->func)
						     : task->func;
}

/* Of a node that is skipped the function that it has in other runs. */
static inline ktrt_func node_func(const struct ktrt_task *node)
{
	return unlikely(node->flags & TASK_SPOILT) ? node->kept : node->func;
}

/* May it be done on the stack of an attached thread?  Of a part of a loop the function that it
 * calls decides. */
static inline bool visitor_may_run(const struct ktrt_task *task)
{
	ktrt_func func;

	if (task->flags & TASK_NODE)
		return func_is_brief(node_func(task));
	if (loop_has_part(task, &func))
		return func_is_brief(func);
	return func_is_brief(task_func(task));
}

/* The task, which may be NULL, unless the thread is an attached one that leaves it to
 * workers.  Otherwise the one left before may be gone, and its record another task's. */
static inline struct ktrt_task *visit_accept(struct worker *w,
					     struct ktrt_task *task)
{
	if (likely(!w->outer))
		return task;
	/* It may have noted one that was left before. */
	if (!task)
		return NULL;
	if (!visitor_may_run(task)) {
		visit_leave(w, task);
		return NULL;
	}
	at_poke(&w->left, NULL);
	return task;
}

/* A call that is timed. */
#define BRIEF_NS 20000

struct timed {
	ktrt_func func;
	void *arg;
	uint64_t took_ns;
};

static inline int time_it(void *arg)
{
	struct timed *timed = arg;
	uint64_t begin_ns = now_ns();
	int error = timed->func(timed->arg);

	timed->took_ns = now_ns() - begin_ns;
	return error;
}

/* What a call is, as traces say it. */
static inline ktrt_func known_func(ktrt_func func, void *arg)
{
	const struct timed *timed = arg;
	const struct task_args *args;

	if (func == time_it)
		return known_func(timed->func, timed->arg);
	if (func == ktrt_dispatch)
		return *(const ktrt_func *)arg;
	args = arg;
	return func == task_run_args ? args_func(args->func) : func;
}

#endif /* RUNTIME_FUNC_KINDS_H */
