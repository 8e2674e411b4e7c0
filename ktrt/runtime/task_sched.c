/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where workers find tasks.  A worker takes, in this order: the task that its last one
 * made ready; urgent tasks of the node queue; the newest of its own queue; the rest of the
 * node queue; what it can steal from other workers' queues (steal_tasks.c); and tasks of
 * other nodes' queues.
 *
 * Only a few workers search at a time: a worker that finds a task and was the last to
 * search wakes the next if there is more.  Does not own running tasks (task_run.c), nor
 * sleeping and waking (park.c).
 *
 * Locking: rt.h.  What is pushed to or popped from a worker's queue is so by O.
 */
#include <limits.h>

#include "func_kinds.h"

/* Ancestors that are checked before a task is left to others. */
#define BELOW_STEPS 64
/* Every so many tasks the node queue comes before the own queue. */
#define NODE_QUEUE_TURN 64

void sched_plenty(struct worker *w)
{
	if (unlikely(w->outer && !w->stack_least))
		worker_read_stack(w);
	at_store_seq(&w->deque.plenty, 1);
	/* Thieves may have been faster; from here on they see it. */
	if (deque_size(&w->deque) < rt.plenty / 2)
		at_store(&w->deque.plenty, 0);
}

/* ---- finding ---- */

bool task_is_below_in(struct ktrt_task *task, struct ktrt_task *above,
		      const struct ktrt_group *group)
{
	uint32_t nesting = at_peek(&task->nesting);
	uint32_t wanted = at_peek(&above->nesting);
	bool is_in = !group;

	for (int step = 0; step < BELOW_STEPS && nesting > wanted; step++) {
		uint32_t up;

		is_in = is_in || at_peek(&task->group) == group;
		task = at_peek(&task->parent);
		if (task == above)
			return is_in;
		if (!task)
			return false;
		up = at_peek(&task->nesting);
		if (up >= nesting)
			return false;
		nesting = up;
	}
	return false;
}

bool task_is_below(struct ktrt_task *task, struct ktrt_task *above)
{
	return task_is_below_in(task, above, NULL);
}

static bool is_below(struct ktrt_task *task, void *above)
{
	return task_is_below(task, above);
}

/* Tasks stand in the queue of the node that they name. */
static struct ktrt_task *take_below_from_nodes(struct worker *w,
					       struct ktrt_task *above)
{
	const struct node *node = own_node(w);
	struct ktrt_task *task =
		node_queue_take_below(own_node_queue(w), above);

	for (unsigned i = 0; !task && i + 1 < rt.nr_nodes; i++)
		task = node_queue_take_below(&rt.node_queues[node->near[i]],
					     above);
	return task;
}

struct ktrt_task *sched_take_below(struct worker *w, struct ktrt_task *above)
{
	struct node_queue *queue = own_node_queue(w);
	struct ktrt_task *task = NULL;

	if (unlikely(node_queue_urgent(queue)))
		task = node_queue_take_below(queue, above);
	if (unlikely(task))
		return task;
	task = pop_own(w);
	if (likely(task &&
		   (task->parent == above || task_is_below(task, above))))
		return task;
	if (task) {
		/* There was room for it a moment ago. */
		deque_push(&w->deque, task);
		/* A worker that went to sleep meanwhile has not seen this task. */
		sched_notify(w);
	}
	task = steal_task(w, is_below, above);
	return task ? task : take_below_from_nodes(w, above);
}

/* The worker's own node was searched before. */
static struct ktrt_task *take_from_node_queues(struct worker *w)
{
	const struct node *node = own_node(w);
	struct ktrt_task *task = NULL;

	for (unsigned i = 0; !task && i + 1 < rt.nr_nodes; i++)
		task = node_queue_take(&rt.node_queues[node->near[i]]);
	return task;
}

static inline struct ktrt_task *take_own(struct worker *w)
{
	struct node_queue *queue = own_node_queue(w);
	struct ktrt_task *task = NULL;

	if (unlikely(node_queue_urgent(queue) ||
		     !(++w->tick % NODE_QUEUE_TURN)))
		task = node_queue_take(queue);
	if (!task)
		task = pop_own(w);
	if (!task)
		task = node_queue_take(queue);
	return task;
}

struct ktrt_task *sched_take(struct worker *w)
{
	struct ktrt_task *task = take_own(w);

	if (!task)
		task = steal_task(w, NULL, NULL);
	if (!task)
		task = take_from_node_queues(w);
	return task;
}

bool sched_work_beside(const struct worker *but)
{
	unsigned slot = mask_next(rt.loaded, 0, rt.nr_slots);

	for (; slot < rt.nr_slots;
	     slot = mask_next(rt.loaded, slot + 1, rt.nr_slots)) {
		struct worker *w = at_load(&rt.workers[slot]);

		if (w && w != but && deque_size(&w->deque) > 0)
			return true;
	}
	for (unsigned node = 0; node < rt.nr_nodes; node++)
		if (node_queue_has(&rt.node_queues[node]))
			return true;
	return false;
}

bool sched_work_visible(void)
{
	return sched_work_beside(NULL);
}

/* ---- who searches ---- */

/* Idle cores, and nobody searches for tasks. */
static inline bool wants_waking(uint64_t idlers)
{
	return (uint32_t)idlers && !(idlers >> 32);
}

static void __attribute__((noinline)) wake_one(struct worker *w)
{
	uint64_t idlers = at_load_seq(&rt.idlers);

	while (wants_waking(idlers))
		if (at_cas(&rt.idlers, &idlers, idlers + IDLERS_SEARCH)) {
			wake_worker(w);
			return;
		}
}

WAKE_PATH void sched_notify(struct worker *w)
{
	if (likely(!wants_waking(at_load_seq(&rt.idlers))))
		return;
	if (!(w && w->lone && wake_to_hand(w)))
		wake_one(w);
}

void sched_found(struct worker *w)
{
	uint64_t idlers = at_sub(&rt.idlers, IDLERS_SEARCH) - IDLERS_SEARCH;

	if (wants_waking(idlers) && sched_work_visible())
		wake_one(w);
}

/*
 * A worker whose last task was handed to it runs on the CPU of the thread that made the
 * task and waits for it.  So it searches for two microseconds only.  With 50, the round
 * trip took 35 to 68 us after 3 ms of sleep; with two it takes 16 to 19.
 */
#define BRIEF_ROUNDS 8

/* Search for a while.  A worker that becomes ready on this core has precedence. */
static struct ktrt_task *poll_tasks(struct worker *w)
{
	unsigned rounds = w->borrows ? BRIEF_ROUNDS : UINT_MAX;
	uint64_t end_ns = 0;

	w->borrows = false;
	for (unsigned round = 0; !at_peek(&rt.stop); round++) {
		struct ktrt_task *task = sched_take(w);

		if (task)
			return task;
		if (core_overloaded(w->core))
			return NULL;
		if (round >= rounds)
			return NULL;
		for (unsigned i = 0; i < (round < 16 ? round : 16); i++)
			cpu_relax();
		if (round % 16 == 0) {
			uint64_t now = now_ns();

			if (!end_ns)
				end_ns = now + rt.spin_ns;
			else if (now >= end_ns)
				return NULL;
		}
	}
	return NULL;
}

/*
 * Take the task for which the worker was woken from its maker's queue.
 *
 * Return: NULL if it was woken for any task, or another worker was faster.  Then the worker
 * counts as searching.
 */
static struct ktrt_task *take_handed(struct worker *w)
{
	struct worker *maker = w->maker;
	struct ktrt_task *task = NULL;

	if (!maker)
		return NULL;
	w->maker = NULL;
	if (likely(!node_queue_urgent(own_node_queue(w))))
		task = deque_steal(&maker->deque, NULL, NULL);
	if (unlikely(!task)) {
		at_add(&rt.idlers, IDLERS_SEARCH);
		return NULL;
	}
	taken_from(maker);
	count_up(&w->counts.steals);
	w->borrows = w->handed = true;
	return task;
}

/* The worker counts as searching. */
static WAKE_PATH struct ktrt_task *find_task(struct worker *w)
{
	for (;;) {
		struct ktrt_task *task = poll_tasks(w);

		if (task) {
			sched_found(w);
			return task;
		}
		/* Whatever is queued from here on is seen before sleeping. */
		at_sub(&rt.idlers, IDLERS_SEARCH);
		if (at_load(&rt.stop))
			return NULL;
		park_idle(w);
		task = take_handed(w);
		if (task)
			return task;
	}
}

/*
 * The worker's own queue is empty.  It tries to steal once before it counts as searching:
 * all workers read that count whenever they queue a task.
 */
static struct ktrt_task *search_elsewhere(struct worker *w)
{
	struct ktrt_task *task;

	if (unlikely(w->fast))
		short_tasks_rest(w, NULL);
	task = steal_task(w, NULL, NULL);
	if (task)
		return task;
	at_add(&rt.idlers, IDLERS_SEARCH);
	return find_task(w);
}

/* One that was handed over is not timed: after a pause the code for that is in no cache. */
static inline bool is_foreign(struct worker *w, const struct ktrt_task *task)
{
	if (unlikely(w->handed)) {
		w->handed = false;
		return false;
	}
	return !(task->flags & TASK_NODE) &&
	       task->maker != (uint16_t)(w->slot + 1);
}

WAKE_PATH void sched_work(struct worker *w)
{
	struct ktrt_task *task = find_task(w);

	while (task) {
		ktrt_func func = task_func(task);

		at_poke(&w->core->began, func);
		task = unlikely(is_foreign(w, task)) ? short_tasks_run(w, task)
						     : task_run(w, task);
		if (unlikely(at_peek(&rt.watching) != at_peek(&w->umt)))
			worker_monitor(w, true);
		if (unlikely(at_peek(&w->stuck)))
			park_goes_on(w);
		if (unlikely(core_overloaded(w->core) ||
			     (task && node_queue_urgent(own_node_queue(w))))) {
			if (task)
				task_ready(w, task);
			task = early_take(w, func);
			if (!task)
				park_overloaded(w);
		}
		if (!task)
			task = take_own(w);
		if (!task)
			task = search_elsewhere(w);
	}
}
