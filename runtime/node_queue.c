/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A node queue: a list for priority 0, a binary heap for the others.
 */
#include <stdlib.h>

#include "rt.h"
#include "node_queue.h"

void node_queue_init(struct node_queue *queue)
{
	pthread_mutex_init(&queue->lock, NULL);
	queue->first = NULL;
	queue->end = &queue->first;
	queue->heap = NULL;
	queue->nr = 0;
	queue->nr_heap = queue->capacity = 0;
	queue->order = 0;
}

void node_queue_free(struct node_queue *queue)
{
	free(queue->heap);
	pthread_mutex_destroy(&queue->lock);
}

static bool runs_before(const struct ktrt_task *a, const struct ktrt_task *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	return a->order < b->order;
}

static bool heap_put(struct node_queue *queue, struct ktrt_task *task)
{
	struct ktrt_task **heap = queue->heap;
	size_t at = queue->nr_heap;

	if (at == queue->capacity) {
		size_t capacity = at ? at * 2 : 64;

		heap = realloc(heap, capacity * sizeof(struct ktrt_task *));
		if (!heap)
			return false;
		queue->heap = heap;
		queue->capacity = capacity;
	}
	task->order = queue->order++;
	for (; at && runs_before(task, heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = task;
	queue->nr_heap++;
	return true;
}

static struct ktrt_task *heap_take(struct node_queue *queue)
{
	struct ktrt_task **heap = queue->heap;
	struct ktrt_task *task = heap[0];
	struct ktrt_task *last = heap[--queue->nr_heap];
	size_t nr = queue->nr_heap, at = 0, child;

	while ((child = 2 * at + 1) < nr) {
		if (child + 1 < nr && runs_before(heap[child + 1], heap[child]))
			child++;
		if (!runs_before(heap[child], last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return task;
}

/* Under the lock: what others may see without it. */
static void publish_top(struct node_queue *queue, int change)
{
	int top = queue->nr_heap ? queue->heap[0]->priority : 0;

	if (queue->first && top < 0)
		top = 0;
	at_poke(&queue->top, top);
	at_store_seq(&queue->nr, queue->nr + (uint32_t)change);
}

bool node_queue_put(struct node_queue *queue, struct ktrt_task *task)
{
	bool put = true;

	pthread_mutex_lock(&queue->lock);
	if (task->priority) {
		put = heap_put(queue, task);
	} else {
		task->next = NULL;
		*queue->end = task;
		queue->end = &task->next;
	}
	if (put)
		publish_top(queue, 1);
	pthread_mutex_unlock(&queue->lock);
	return put;
}

static struct ktrt_task *list_take(struct node_queue *queue)
{
	struct ktrt_task *task = queue->first;

	queue->first = task->next;
	if (!queue->first)
		queue->end = &queue->first;
	return task;
}

/* Priority 0 stands in the list. */
static bool list_is_next(const struct node_queue *queue)
{
	if (!queue->nr_heap)
		return true;
	return queue->first && queue->heap[0]->priority < 0;
}

struct ktrt_task *
node_queue_take(struct node_queue *queue,
		bool (*wanted)(struct ktrt_task *task, void *arg), void *arg)
{
	struct ktrt_task *task;
	bool list;

	if (!node_queue_has(queue))
		return NULL;
	pthread_mutex_lock(&queue->lock);
	list = list_is_next(queue);
	task = list ? queue->first : queue->heap[0];
	if (task && wanted && !wanted(task, arg))
		task = NULL;
	if (task) {
		task = list ? list_take(queue) : heap_take(queue);
		publish_top(queue, -1);
	}
	pthread_mutex_unlock(&queue->lock);
	return task;
}
