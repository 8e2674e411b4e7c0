/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A node queue: a list for priority 0, a binary heap for the others, and a table of
 * families.  Behaves badly with very many families: node_queue_take_wanted() goes
 * through all of them.
 *
 * Locking: node_queue.h.  All statics are called under the queue's lock.
 */
#include <stdlib.h>

#include "rt.h"
#include "node_queue.h"

void node_queue_init(struct node_queue *queue, struct ktrt_task **families)
{
	pthread_mutex_init(&queue->lock, NULL);
	queue->first = queue->last = NULL;
	queue->heap = NULL;
	queue->nr = 0;
	queue->nr_heap = queue->capacity = 0;
	queue->order = 0;
	queue->families = families;
}

void node_queue_free(struct node_queue *queue)
{
	free(queue->heap);
	pthread_mutex_destroy(&queue->lock);
}

/* ---- families: rings of tasks; one of each ring stands in a bucket ---- */

/* Where the family of @parent stands, or would. */
static struct ktrt_task **find_family(struct node_queue *queue,
				      const struct ktrt_task *parent)
{
	uint64_t mixed = (uintptr_t)parent * 0x9e3779b97f4a7c15u;
	struct ktrt_task **at =
		&queue->families[mixed >> 32 & (FAMILY_BUCKETS - 1)];

	rt_assert_locked(RANK_INNER);
	while (*at && (*at)->parent != parent)
		at = &(*at)->family;
	return at;
}

static void join_family(struct node_queue *queue, struct ktrt_task *task)
{
	struct ktrt_task **at = find_family(queue, task->parent);
	struct ktrt_task *first = *at;

	if (first) {
		task->younger = first;
		task->elder = first->elder;
		first->elder->younger = task;
		first->elder = task;
	} else {
		task->younger = task->elder = task;
		task->family = NULL;
		*at = task;
	}
}

static void leave_family(struct node_queue *queue, struct ktrt_task *task)
{
	struct ktrt_task **at = find_family(queue, task->parent);
	struct ktrt_task *younger = task->younger;

	task->elder->younger = younger;
	younger->elder = task->elder;
	if (*at != task)
		return;
	if (younger == task) {
		*at = task->family;
	} else {
		younger->family = task->family;
		*at = younger;
	}
}

/* ---- the order ---- */

static bool runs_before(const struct ktrt_task *a, const struct ktrt_task *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	return a->order < b->order;
}

static void heap_set(struct node_queue *queue, size_t at,
		     struct ktrt_task *task)
{
	queue->heap[at] = task;
	task->heap_index = at;
}

static void heap_rise(struct node_queue *queue, size_t at,
		      struct ktrt_task *task)
{
	struct ktrt_task **heap = queue->heap;

	for (; at && runs_before(task, heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap_set(queue, at, heap[(at - 1) / 2]);
	heap_set(queue, at, task);
}

static void heap_sink(struct node_queue *queue, size_t at,
		      struct ktrt_task *task)
{
	struct ktrt_task **heap = queue->heap;
	size_t nr = queue->nr_heap, child;

	while ((child = 2 * at + 1) < nr) {
		if (child + 1 < nr && runs_before(heap[child + 1], heap[child]))
			child++;
		if (!runs_before(heap[child], task))
			break;
		heap_set(queue, at, heap[child]);
		at = child;
	}
	heap_set(queue, at, task);
}

static bool heap_put(struct node_queue *queue, struct ktrt_task *task)
{
	if (queue->nr_heap == queue->capacity) {
		size_t capacity = queue->capacity ? queue->capacity * 2 : 64;
		struct ktrt_task **heap = realloc(
			queue->heap, capacity * sizeof(struct ktrt_task *));

		if (!heap)
			return false;
		queue->heap = heap;
		queue->capacity = capacity;
	}
	task->order = queue->order++;
	heap_rise(queue, queue->nr_heap++, task);
	return true;
}

static void heap_remove(struct node_queue *queue, struct ktrt_task *task)
{
	struct ktrt_task *last = queue->heap[--queue->nr_heap];
	size_t at = task->heap_index;

	if (last == task)
		return;
	if (at && runs_before(last, queue->heap[(at - 1) / 2]))
		heap_rise(queue, at, last);
	else
		heap_sink(queue, at, last);
}

static void list_put(struct node_queue *queue, struct ktrt_task *task)
{
	task->next = NULL;
	task->prev = queue->last;
	*(queue->last ? &queue->last->next : &queue->first) = task;
	queue->last = task;
}

static void list_remove(struct node_queue *queue, struct ktrt_task *task)
{
	*(task->prev ? &task->prev->next : &queue->first) = task->next;
	*(task->next ? &task->next->prev : &queue->last) = task->prev;
}

/* Priority 0 stands in the list. */
static struct ktrt_task *find_next(const struct node_queue *queue)
{
	if (!queue->nr_heap || (queue->first && queue->heap[0]->priority < 0))
		return queue->first;
	return queue->heap[0];
}

/* What others may see without the lock. */
static void publish_top(struct node_queue *queue, int change)
{
	int top = queue->nr_heap ? queue->heap[0]->priority : 0;

	rt_assert_locked(RANK_INNER);
	if (queue->first && top < 0)
		top = 0;
	at_poke(&queue->top, top);
	at_store_seq(&queue->nr, queue->nr + (uint32_t)change);
}

static uint32_t mark_of(const struct worker *w)
{
	return w ? w->slot + 1 : 0;
}

bool node_queue_leave(struct node_queue *queue, struct ktrt_task *task,
		      const struct worker *by)
{
	bool put = true;

	mutex_take(&queue->lock, RANK_INNER);
	if (task->priority)
		put = heap_put(queue, task);
	else
		list_put(queue, task);
	if (put) {
		at_poke(&task->left_by, mark_of(by));
		join_family(queue, task);
		publish_top(queue, 1);
	}
	mutex_drop(&queue->lock, RANK_INNER);
	return put;
}

bool node_queue_put(struct node_queue *queue, struct ktrt_task *task)
{
	return node_queue_leave(queue, task, NULL);
}

/* An attached thread takes nothing that one has left to workers: while it had the task in hand,
 * a worker that looks for what was left would miss it. */
static bool is_for_workers(struct ktrt_task *task)
{
	struct worker *w = self_worker;

	if (likely(!task->left_by) || !w || !w->outer)
		return false;
	visit_note(w, task);
	return true;
}

static struct ktrt_task *remove_task(struct node_queue *queue,
				     struct ktrt_task *task)
{
	rt_assert_locked(RANK_INNER);
	if (!task || is_for_workers(task))
		return NULL;
	if (task->priority)
		heap_remove(queue, task);
	else
		list_remove(queue, task);
	at_poke(&task->left_by, 0);
	leave_family(queue, task);
	publish_top(queue, -1);
	return task;
}

/* ---- taking ---- */

struct ktrt_task *node_queue_take(struct node_queue *queue)
{
	struct ktrt_task *task;

	if (!node_queue_has(queue))
		return NULL;
	mutex_take(&queue->lock, RANK_INNER);
	task = remove_task(queue, find_next(queue));
	mutex_drop(&queue->lock, RANK_INNER);
	return task;
}

struct ktrt_task *node_queue_take_below(struct node_queue *queue,
					struct ktrt_task *above)
{
	struct ktrt_task *task;

	if (!node_queue_has(queue))
		return NULL;
	mutex_take(&queue->lock, RANK_INNER);
	task = find_next(queue);
	if (task && !task_is_below(task, above))
		task = *find_family(queue, above);
	task = remove_task(queue, task);
	mutex_drop(&queue->lock, RANK_INNER);
	return task;
}

/* Children that are checked before they are left to others. */
#define IN_STEPS 64

static struct ktrt_task *find_in(struct ktrt_task *family,
				 const struct ktrt_group *group)
{
	struct ktrt_task *task = family;

	for (int step = 0; task && step < IN_STEPS; step++) {
		if (task->group == group)
			return task;
		task = task->younger;
		if (task == family)
			return NULL;
	}
	return NULL;
}

struct ktrt_task *node_queue_take_in(struct node_queue *queue,
				     struct ktrt_task *above,
				     const struct ktrt_group *group)
{
	struct ktrt_task *task;

	if (!node_queue_has(queue))
		return NULL;
	mutex_take(&queue->lock, RANK_INNER);
	task = find_next(queue);
	if (task && !task_is_below_in(task, above, group))
		task = find_in(*find_family(queue, above), group);
	task = remove_task(queue, task);
	mutex_drop(&queue->lock, RANK_INNER);
	return task;
}

/* @left may be gone: only the one that is found is believed. */
static struct ktrt_task *find_left(struct node_queue *queue,
				   const struct ktrt_task *left)
{
	struct ktrt_task *family = *find_family(queue, at_peek(&left->parent));
	struct ktrt_task *task = family;

	while (task && task != left) {
		task = task->younger;
		if (task == family)
			return NULL;
	}
	return task;
}

struct ktrt_task *node_queue_take_left(struct node_queue *queue,
				       const struct ktrt_task *left,
				       uint32_t left_by,
				       const struct wait_filter *filter)
{
	struct ktrt_task *task;

	if (!node_queue_has(queue))
		return NULL;
	mutex_take(&queue->lock, RANK_INNER);
	task = find_left(queue, left);
	if (task && (task->left_by != left_by || filter_refuses(filter, task)))
		task = NULL;
	task = remove_task(queue, task);
	mutex_drop(&queue->lock, RANK_INNER);
	return task;
}

/* Find a wanted task of the family.  Its parent decides for all, except for tasks of a
 * group, and for refused ones. */
static struct ktrt_task *find_wanted(struct ktrt_task *family,
				     const struct wait_filter *filter)
{
	struct ktrt_task *task = family;
	bool all = filter_wants_children(filter, family->parent);

	if (likely(all && !filter->self))
		return family;
	if (!all && !filter->group)
		return NULL;
	do {
		if ((all || task->group == filter->group) &&
		    !filter_refuses(filter, task))
			return task;
		task = task->younger;
	} while (task != family);
	return NULL;
}

struct ktrt_task *node_queue_take_wanted(struct node_queue *queue,
					 const struct wait_filter *filter)
{
	struct ktrt_task *task = NULL, *family;

	if (!node_queue_has(queue))
		return NULL;
	mutex_take(&queue->lock, RANK_INNER);
	if (filter->any)
		task = find_next(queue);
	if (task && filter_refuses(filter, task))
		task = NULL;
	for (unsigned i = 0; !task && i < FAMILY_BUCKETS; i++)
		for (family = queue->families[i]; !task && family;
		     family = family->family)
			task = find_wanted(family, filter);
	task = remove_task(queue, task);
	mutex_drop(&queue->lock, RANK_INNER);
	return task;
}
