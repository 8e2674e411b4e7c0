/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which tasks a worker may run while it waits, and how it finds these (wait_search.c,
 * group_search.c).
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_WAIT_SEARCH_H
#define RUNTIME_WAIT_SEARCH_H

#include "node_queue.h"
#include "task_sched.h"

/* The tasks that a worker may run while it waits. */
struct wait_filter {
	struct ktrt_task *above; /* all below this one */
	struct ktrt_group *group; /* or of this group, and all below; NULL */
	/* NULL: it is @above.  Else of what is not below this one only what needs
	 * nothing any more; wait_search.c. */
	const struct ktrt_task *self;
	bool any; /* every task, below @above or not; ->self as ever */
	/* Also of what is below @self only what waits for nothing beside it: the worker may
	 * be given a turn at any moment, and keep it. */
	bool turns;
};

/* ---- group_search.c ---- */

/*
 * A task of the group, or below one of it, and below the task that the worker does; or
 * NULL.  The quick way: tasks are left to other workers that a longer search would find.
 */
struct ktrt_task *search_group(struct worker *w,
			       const struct ktrt_group *group);

/* ---- wait_search.c ---- */

/* What the task waits for that the worker does: its children, or the tasks of a group
 * unless that is NULL. */
struct wait_filter filter_for(struct ktrt_task *task, struct ktrt_group *group);
/* Would the task on this stack have to wait for what is below it there? */
bool filter_refuses(const struct wait_filter *filter,
		    const struct ktrt_task *task);

/* Does @filter want the children of @parent? */
bool filter_wants_children(const struct wait_filter *filter,
			   const struct ktrt_task *parent);
/*
 * For when no more threads can be made.  Return: a task that @filter wants, in whichever
 * queue it is, or NULL.
 */
struct ktrt_task *search_wanted(struct worker *w,
				const struct wait_filter *filter);
/* The same whatever the caller waits for: any task that does not wait for others' data
 * below. */
struct ktrt_task *search_open(struct worker *w);
/* Was there a stall since it was last asked? */
bool search_is_due(struct worker *w);
/* A wait begins: only stalls from now on are reasons to search. */
static inline void search_begin(struct worker *w)
{
	search_is_due(w);
}
/* Nothing moves: have workers that sleep in the middle of tasks search. */
void search_by_all(void);

/* As many threads as there may be? */
static inline bool threads_at_limit(void)
{
	return at_peek(&rt.nr_threads) >= rt.options.max_threads;
}

/* Has the node queue a task that goes before those in the worker's own queue? */
static inline bool sched_urgent(const struct worker *w)
{
	return node_queue_urgent(&rt.node_queues[w->core ? w->core->node : 0]);
}

#endif /* RUNTIME_WAIT_SEARCH_H */
