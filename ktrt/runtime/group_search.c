/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How a worker that waits for a group finds tasks of it: in its own queue, at the ends of
 * other workers' queues, and in node queues.  It runs none of its other children, because
 * they may wait for what it does after the wait.
 *
 * Behaves badly if many other tasks were made after those of the group: it checks SEARCHED
 * tasks of its own queue, and leaves those behind to other workers.
 *
 * Does not own the search when no thread is left (wait_search.c).
 *
 * Locking: rt.h.
 */
#include "rt.h"

#define SEARCHED 64

struct wanted {
	struct ktrt_task *above;
	const struct ktrt_group *group;
};

static bool is_wanted(struct ktrt_task *task, void *arg)
{
	const struct wanted *wanted = arg;

	return task_is_below_in(task, wanted->above, wanted->group);
}

/* Take the newest wanted task; newer ones go back in the same order. */
static struct ktrt_task *search_own(struct worker *w, struct wanted *wanted)
{
	struct ktrt_task *others[SEARCHED], *task = NULL;
	unsigned nr = 0;

	while (nr < SEARCHED) {
		task = deque_pop(&w->deque);
		if (!task || is_wanted(task, wanted))
			break;
		others[nr++] = task;
		task = NULL;
	}
	if (task)
		taken_from(w);
	if (likely(!nr))
		return task;
	/* There was room for them a moment ago. */
	while (nr)
		deque_push(&w->deque, others[--nr]);
	/* A worker that went to sleep meanwhile has not seen these tasks. */
	sched_notify(w);
	return task;
}

static struct ktrt_task *search_nodes(struct worker *w,
				      const struct wanted *wanted)
{
	const struct node *node = own_node(w);
	struct ktrt_task *task = node_queue_take_in(
		own_node_queue(w), wanted->above, wanted->group);

	for (unsigned i = 0; !task && i + 1 < rt.nr_nodes; i++)
		task = node_queue_take_in(&rt.node_queues[node->near[i]],
					  wanted->above, wanted->group);
	return task;
}

struct ktrt_task *search_group(struct worker *w, const struct ktrt_group *group)
{
	struct wanted wanted = { w->current, group };
	struct ktrt_task *task = NULL;

	if (unlikely(sched_urgent(w)))
		task = search_nodes(w, &wanted);
	if (!task)
		task = search_own(w, &wanted);
	if (!task)
		task = steal_task(w, is_wanted, &wanted);
	return task ? task : search_nodes(w, &wanted);
}
