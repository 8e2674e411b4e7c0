/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Taking tasks from other workers' queues: the oldest of each, those of the same
 * last-level cache first, then of the same node, then of the nearest.  A sparse mask tells
 * which queues may have tasks.  Does not own when a worker looks there (task_sched.c), nor
 * taking all of a queue (wait_search.c).
 *
 * Behaves badly where the oldest task of each queue is not wanted: it does not look
 * behind that.
 *
 * Locking: rt.h.
 */
#include "rt.h"

/* A thief takes an eighth of the nodes in a queue, at most this many. */
#define NODES_STOLEN 32

/*
 * Take further nodes of a graph from the victim into the thief's queue, few at first.  Each
 * theft moves cache lines between the two, so taking two nodes in a row costs less than
 * taking them one by one.
 *
 * Return: how many were taken.
 */
static uint32_t steal_nodes(struct worker *w, struct worker *victim,
			    wanted_func wanted, void *arg)
{
	int64_t eighth = deque_size(&victim->deque) / 8;
	uint32_t most = w->judged < NODES_STOLEN ? w->judged : NODES_STOLEN;
	uint32_t nr = 0;

	while (nr < most && nr < eighth) {
		struct ktrt_task *task =
			deque_steal(&victim->deque, wanted, arg);

		if (!task)
			break;
		__builtin_prefetch(task);
		if (unlikely(!queue_own(w, task))) {
			node_queue_put(own_node_queue(w), task);
			sched_notify(w);
			break;
		}
		nr++;
	}
	/* A worker that went to sleep meanwhile may have seen these nodes in neither queue. */
	if (nr)
		sched_notify(w);
	return nr;
}

static struct ktrt_task *steal_from(struct worker *w, unsigned from,
				    unsigned end, wanted_func wanted, void *arg)
{
	unsigned slot = mask_next(rt.loaded, from, end);

	for (; slot < end; slot = mask_next(rt.loaded, slot + 1, end)) {
		struct worker *victim = at_load(&rt.workers[slot]);
		struct ktrt_task *task;
		uint32_t more = 0;

		if (!victim || victim == w)
			continue;
		task = deque_steal(&victim->deque, wanted, arg);
		if (!task)
			continue;
		if (task->flags & TASK_NODE && w->core) {
			more = steal_nodes(w, victim, wanted, arg);
			short_tasks_judge(w, victim, more + 1);
		}
		taken_from(victim);
		at_poke(&w->counts.steals,
			at_peek(&w->counts.steals) + more + 1);
		return task;
	}
	return NULL;
}

/*
 * Steals from the queues of a cache.  The first victim has the offset in that cache that
 * the thief has in its own, so that not all thieves begin with the same one.
 */
static struct ktrt_task *steal_in(struct worker *w, unsigned cache,
				  wanted_func wanted, void *arg)
{
	unsigned first = cache * rt.slots_per_cache;
	unsigned from = first + w->slot % rt.slots_per_cache;
	struct ktrt_task *task;

	task = steal_from(w, from, first + rt.slots_per_cache, wanted, arg);
	return task ? task : steal_from(w, first, from, wanted, arg);
}

/* Steal from the caches of a node, beginning with that of the thief's own index. */
static struct ktrt_task *steal_on(struct worker *w, const struct node *node,
				  unsigned number, wanted_func wanted,
				  void *arg)
{
	unsigned nr = node->end_cache - node->first_cache;
	struct ktrt_task *task = NULL;

	for (unsigned i = 0; !task && i < nr; i++)
		task = steal_in(w, node->first_cache + (number + i) % nr,
				wanted, arg);
	return task;
}

struct ktrt_task *steal_task(struct worker *w, wanted_func wanted, void *arg)
{
	const struct node *node = own_node(w);
	unsigned number = w->core ? w->core->cache - node->first_cache : 0;
	struct ktrt_task *task = steal_on(w, node, number, wanted, arg);

	for (unsigned i = 0; !task && i + 1 < rt.nr_nodes; i++)
		task = steal_on(w, &rt.nodes[node->near[i]], number, wanted,
				arg);
	return task;
}

/* What is found at the ends of queues. */
struct beside {
	struct ktrt_task *above;
	bool others; /* a task that is not below it */
};

static bool note_if_other(struct ktrt_task *task, void *arg)
{
	struct beside *beside = arg;

	if (!task_is_below(task, beside->above))
		beside->others = true;
	return false;
}

bool steal_leaves_others(struct worker *w, struct ktrt_task *above)
{
	struct beside beside = { above, false };

	if (!sched_work_beside(w))
		return false;
	for (unsigned i = 0; i < rt.nr_nodes; i++)
		beside.others |= node_queue_has(&rt.node_queues[i]);
	if (!beside.others)
		steal_task(w, note_if_other, &beside);
	return beside.others;
}
