/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How a waiting worker finds tasks when no more threads can be made.
 *
 * task_sched.c only checks the ends of queues, which is quick.  The tasks between are
 * left to other workers.  With max_threads threads there may be no other worker.  Then
 * a worker that waits checks its newest task and all node queues before it sleeps.  If
 * still nothing moves (a stall, which the leader finds), all waiting workers empty the
 * workers' queues into a node queue, each until it finds a task that it may run.  Of
 * the workers that wait for children, the one with the deepest nesting always finds
 * one.  So they cannot all wait for ever.
 *
 * An attached thread in the middle of a task is one of them.  But it runs only brief
 * tasks, so it may have the deepest nesting and run nothing.  When all have searched in
 * vain once, one of the workers runs a task that such a thread waits for and has left to
 * them, before any other task that none of them waits for.
 *
 * A group's tasks may depend on tasks that no waiting worker may run.  So may an external
 * event.  If all have searched in vain twice, or for a second if events are
 * outstanding, each runs any task at all, whatever its priority.  Otherwise nothing would
 * ever move.
 *
 * A task may wait for children that wait for data which the task names weakly (proxies.h).
 * So it waits for its siblings.  Its worker runs these too, except those that would wait
 * themselves: what they wait for may be on this stack.
 *
 * The maker of an undeferred task that commutes waits for a turn.  It may get the turn
 * while it runs another task, and keeps it until it returns from that.  So it runs no task
 * that waits for siblings, because these may need the turn.
 *
 * Behaves badly if most of many queued tasks name data weakly: each search goes through a
 * whole family under the lock of its queue, and through the ancestors of tasks whose data
 * is not ready.
 *
 * Does not own the notion of a stall (leader.c).
 *
 * Locking: rt.h.
 */
#include "rt.h"

struct wait_filter filter_for(struct ktrt_task *task, struct ktrt_group *group)
{
	struct wait_filter filter = { task, group, NULL, false, false };

	while (unlikely(proxies_closed(filter.above)) && filter.above->parent) {
		filter.above = at_peek(&filter.above->parent);
		filter.self = task;
	}
	return filter;
}

/* A closed task waits for its siblings; if its parent is closed, also for the parent's. */
bool filter_refuses(const struct wait_filter *filter,
		    const struct ktrt_task *task)
{
	const struct ktrt_task *self = filter->self;
	bool closed = true;

	if (likely(!self) || !proxies_closed(task))
		return false;
	for (; task && task->nesting >= self->nesting; task = task->parent) {
		if (task == self)
			return filter->turns && closed;
		closed = closed && proxies_closed(task);
	}
	return true;
}

/* A filter for any task except those that would wait for their siblings.  @filter: what the
 * worker waits for, or NULL. */
static struct wait_filter filter_for_any(const struct worker *w,
					 const struct wait_filter *filter)
{
	const struct wait_filter any = { w->current, NULL, w->current, true,
					 filter && filter->turns };

	return any;
}

bool filter_wants_children(const struct wait_filter *filter,
			   const struct ktrt_task *parent)
{
	const struct ktrt_group *group = filter->group;

	if (unlikely(filter->any))
		return true;
	for (; parent; parent = parent->parent) {
		if (parent == filter->above ||
		    (group && parent->group == group))
			return true;
		if (!group && parent->nesting <= filter->above->nesting)
			return false;
	}
	return false;
}

static bool is_wanted(const struct ktrt_task *task,
		      const struct wait_filter *filter)
{
	if (unlikely(filter_refuses(filter, task)))
		return false;
	return (filter->group && task->group == filter->group) ||
	       filter_wants_children(filter, task->parent);
}

/* Take the victim's tasks, oldest first, up to a wanted one.  The others go to a node queue
 * for any worker; they have no priority, so that needs no memory. */
static struct ktrt_task *empty_queue(struct worker *w, struct worker *victim,
				     const struct wait_filter *filter)
{
	struct ktrt_task *wanted = NULL;
	bool moved = false;

	while (!wanted && deque_size(&victim->deque) > 0) {
		struct ktrt_task *task =
			deque_steal(&victim->deque, NULL, NULL);

		if (!task)
			continue;
		taken_from(victim);
		count_up(&w->counts.steals);
		if (is_wanted(task, filter)) {
			wanted = task;
			continue;
		}
		node_queue_put(own_node_queue(w), task);
		moved = true;
	}
	/* A worker that went to sleep meanwhile may have seen these tasks in neither queue. */
	if (moved)
		sched_notify(w);
	return wanted;
}

static struct ktrt_task *empty_queues(struct worker *w,
				      const struct wait_filter *filter)
{
	struct ktrt_task *task = NULL;

	for (unsigned i = 0; !task && i < rt.nr_slots; i++) {
		struct worker *victim = at_load(&rt.workers[i]);

		if (victim)
			task = empty_queue(w, victim, filter);
	}
	return task;
}

static struct ktrt_task *search_nodes(const struct wait_filter *filter)
{
	struct ktrt_task *task = NULL;

	for (unsigned i = 0; !task && i < rt.nr_nodes; i++)
		task = node_queue_take_wanted(&rt.node_queues[i], filter);
	return task;
}

/* The newest own task may be nested deeper than task_is_below() checks. */
static struct ktrt_task *search_own(struct worker *w,
				    const struct wait_filter *filter)
{
	struct ktrt_task *task = deque_pop(&w->deque);

	if (!task)
		return NULL;
	if (is_wanted(task, filter)) {
		taken_from(w);
		return task;
	}
	/* There was room for it a moment ago. */
	deque_push(&w->deque, task);
	/* A worker that went to sleep meanwhile has not seen this task. */
	sched_notify(w);
	return NULL;
}

bool search_is_due(struct worker *w)
{
	uint32_t stalls = at_load(&rt.stalls);

	if (likely(w->stalls == stalls))
		return false;
	at_poke(&w->stalls, stalls);
	return true;
}

/*
 * Both words of the note are written by its thread, which may change it between the two
 * loads here.  That does no harm.  ->left_by is stored before ->left and loaded after it, so
 * it is of the same note or of a later one, and never 0, the mark of what nobody has left.
 * node_queue_take_left() compares it with the mark of the task itself, under Q:
 *
 * - If they differ, nothing is taken.  The thread was awake, since it changed its note.  If
 *   all wait at the next stall, its note is whole then.
 * - If they are the same, the task is queued, and an attached thread has left it to workers:
 *   maybe for another note, or as another task in the same record.  Any worker may do
 *   such a task that @filter does not refuse.
 *
 * The thread itself finds in visit_left_stays() what it has written.
 */
static struct ktrt_task *take_left_by(const struct worker *by,
				      const struct wait_filter *filter)
{
	const struct ktrt_task *left = at_load(&by->left);
	uint32_t left_by = at_load(&by->left_by);
	struct ktrt_task *task = NULL;

	for (unsigned i = 0; left && !task && i < rt.nr_nodes; i++)
		task = node_queue_take_left(&rt.node_queues[i], left, left_by,
					    filter);
	return task;
}

/*
 * Take a task that an attached thread waits for and has left to workers.  It is in a node
 * queue until a worker takes it, so nobody misses it here.  A worker that does not do it
 * after all (child_limit.c, early_tasks.c) queues it without its mark.  At the next stall the
 * thread finds that it is no longer there, searches, and leaves it again.
 */
static struct ktrt_task *take_left_task(struct worker *w,
					const struct wait_filter *filter)
{
	const struct wait_filter any = filter_for_any(w, filter);
	struct ktrt_task *task = NULL;

	for (unsigned i = 0; !task && i < rt.nr_slots; i++) {
		const struct worker *other = at_load(&rt.workers[i]);

		if (other)
			task = take_left_by(other, &any);
	}
	return task;
}

/*
 * Take any task, now that workers' queues are empty.  A task whose children would wait is
 * taken only if there was no other task at the previous stall either, and none has begun
 * since: what they wait for may be on this stack, or another worker may provide it.
 */
static struct ktrt_task *take_open_task(struct worker *w,
					const struct wait_filter *filter)
{
	struct wait_filter any = filter_for_any(w, filter);
	struct ktrt_task *task = search_nodes(&any);
	bool again = w->no_open == w->stalls - 1;

	if (task)
		return task;
	w->no_open = w->stalls;
	any.self = NULL;
	return again ? search_nodes(&any) : NULL;
}

struct ktrt_task *search_open(struct worker *w)
{
	const struct wait_filter any = filter_for_any(w, NULL);
	struct ktrt_task *task = sched_urgent(w) ? search_nodes(&any) : NULL;

	if (!task)
		task = empty_queues(w, &any);
	return task ? task : search_nodes(&any);
}

struct ktrt_task *search_wanted(struct worker *w,
				const struct wait_filter *filter)
{
	bool due = search_is_due(w);
	struct ktrt_task *task;

	/* An attached thread without a core leaves tasks to workers as long as these take any. */
	if (!due && !(threads_at_limit() && w->core))
		return NULL;
	task = due ? empty_queues(w, filter) : search_own(w, filter);
	if (!task)
		task = search_nodes(filter);
	/* An attached thread would leave it to workers. */
	if (task || !due || w->outer)
		return task;
	if (at_load(&rt.searched) == w->stalls)
		task = take_left_task(w, filter);
	if (!task && at_load(&rt.in_vain) == w->stalls)
		task = take_open_task(w, filter);
	return task;
}

/* A late signal may reach a record that waits for something else, or for nothing: waiters
 * check again whenever they wake. */
void search_by_all(void)
{
	for (unsigned i = 0; i < rt.nr_slots; i++) {
		struct worker *w = at_load(&rt.workers[i]);
		uint32_t *signal = w ? at_load(&w->awaited) : NULL;

		if (signal)
			signal_give(signal);
	}
}
