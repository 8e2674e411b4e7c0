/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where workers find tasks, and running them.  A worker takes, in this order: the task
 * that its last one made ready; urgent tasks of the node queue; the newest of its own
 * queue; the rest of the node queue; what it can steal from other workers' queues
 * (steal_tasks.c); and tasks of other nodes' queues.
 *
 * Only a few workers search at a time: a worker that finds a task and was the last to
 * search wakes the next if there is more.  Does not own sleeping and waking (park.c).
 *
 * Locking: rt.h.  What is pushed to or popped from a worker's queue is so by O.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "func_kinds.h"
#include "trace.h"

/* Ancestors that are checked before a task is left to others. */
#define BELOW_STEPS 64
/* Every so many tasks the node queue comes before the own queue. */
#define NODE_QUEUE_TURN 64

/* ---- running ---- */

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

	w->current = guard->before;
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

/* Calls the function; its code. */
static inline int call_guarded(struct guard *guard, ktrt_func func, void *arg)
{
	struct worker *w = guard->w;
	int error = -ECANCELED;

	w->current = guard->task;
	if (likely(!at_peek(&rt.cancels)))
		error = func(arg);
	else
		error = call_checked(w, guard->task, func, arg);
	guard->task = NULL;
	/* In the child of a fork that the body made nothing of this is left. */
	if (unlikely(at_peek(&rt.generation) != w->generation))
		exit(0);
	w->current = guard->before;
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

/* May the worker go on with what the last node made ready? */
static inline bool may_continue(const struct worker *w, unsigned nr)
{
	return nr < NODES_IN_TURN && likely(w->core) &&
	       likely(!core_overloaded(w->core)) && likely(!sched_urgent(w));
}

static struct ktrt_task *pop_task(struct worker *w)
{
	struct ktrt_task *task;

	worker_assert_own(w);
	task = deque_pop(&w->deque);
	if (likely(task)) {
		taken_from(w);
	} else if (w->advertised) {
		w->advertised = false;
		at_store(mask_flag(rt.loaded, w->slot), 0);
	}
	return task;
}

/* The newest, if it is of the same run. */
static struct ktrt_task *pop_sibling(struct worker *w,
				     const struct ktrt_task *node)
{
	struct ktrt_task *task = pop_task(w);

	if (likely(!task || task->parent == node->parent))
		return task;
	/* There was room for it a moment ago. */
	deque_push(&w->deque, task);
	/* A worker that went to sleep meanwhile has not seen this task. */
	sched_notify(w);
	return NULL;
}

/* Return: as sched_run(). */
static struct ktrt_task *sinks_done(struct worker *w, struct guard *guard,
				    struct ktrt_task *run)
{
	unsigned nr = guard->sinks;

	guard->sinks = 0;
	return nr ? task_sinks_complete(w, run, nr) : NULL;
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
		if (unlikely(call_guarded(&guard, node->func, node->arg) ||
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

WAKE_PATH struct ktrt_task *sched_run(struct worker *w, struct ktrt_task *task)
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

void sched_run_inside(struct worker *w, struct ktrt_task *task, ktrt_func func,
		      void *arg)
{
	int error = call_task(w, task, func, arg, true);

	if (unlikely(error || !is_new(task)))
		end_inside(w, task, error);
	else
		keep_blank(w, task);
}

void sched_plenty(struct worker *w)
{
	at_store_seq(&w->deque.plenty, 1);
	/* Thieves may have been faster; from here on they see it. */
	if (deque_size(&w->deque) < QUEUE_PLENTY / 2)
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
	task = pop_task(w);
	if (likely(task &&
		   (task->parent == above || task_is_below(task, above))))
		return task;
	/* There was room for it a moment ago. */
	if (task)
		deque_push(&w->deque, task);
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
		task = pop_task(w);
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

struct ktrt_task *sched_run_timed(struct worker *w, struct ktrt_task *task)
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
						     : sched_run(w, task);
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
