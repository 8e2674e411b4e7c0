/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Attached threads that do tasks on the core under them (visit.c).
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_VISIT_H
#define RUNTIME_VISIT_H

#include <ktask/runtime.h>

#include "worker.h"

/* A visit: an attached thread counts as a worker of the core that it runs on. */
struct visit {
	struct worker *w; /* NULL: the thread does not visit a core */
	int cancel_state;
};

/* UMT does not see the thread yet: a call of visit_be_seen() must follow if it stays. */
bool visit_begin(struct visit *visit, struct worker *w);
void visit_be_seen(struct worker *w);
/* Run what it waits for, as visit_help() does. */
void visit_continue(struct visit *visit, struct ktrt_task *above,
		    const struct ktrt_group *group);
/* Return: true if a worker takes the core over. */
bool visit_end(struct visit *visit);

/* The same if a task has ended the thread. */
static inline void visit_left(struct visit *visit)
{
	if (unlikely(visit->w))
		visit_end(visit);
}

/* Run brief tasks that the attached thread waits for: children of @above, or if @group is not
 * NULL, tasks of @group.  Return: true if there may be more and no worker comes for them. */
bool visit_help(struct worker *w, struct ktrt_task *above,
		const struct ktrt_group *group);

/* Should the thread leave the core that it visits?  It was moved to another CPU, or a worker
 * that left the core in the middle of a task waits for it, and has precedence. */
bool visit_is_over(struct worker *w);
/* May it go on with this task?  Then it stays. */
bool visit_may_do(struct worker *w, const struct ktrt_task *task);
/* The thread waits for a task that it, or another attached thread, leaves on a node queue. */
void visit_note(struct worker *w, const struct ktrt_task *task);
/* The thread may not do a task that it found: it is left to workers. */
void visit_leave(struct worker *w, struct ktrt_task *task);
/* Is the task that it has left still there?  Then it has searched. */
bool visit_left_stays(struct worker *w);

/*
 * A thread that waits asks this before it searches.  If it took that task from its queue
 * once more, a worker that looks for what was left would miss it.
 */
static inline bool visit_has_left(struct worker *w)
{
	return unlikely(at_peek(&w->left)) && visit_left_stays(w);
}

/* It waits for something else from now on. */
static inline void visit_forget(struct worker *w)
{
	if (unlikely(at_peek(&w->left)))
		at_store(&w->left, NULL);
}

#endif /* RUNTIME_VISIT_H */
