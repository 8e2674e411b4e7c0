/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A shelf: a list for priority 0, a binary heap for the others.
 */
#include <stdlib.h>

#include "rt.h"
#include "shelf.h"

void shelf_init(struct shelf *shelf)
{
	pthread_mutex_init(&shelf->lock, NULL);
	shelf->first = NULL;
	shelf->end = &shelf->first;
	shelf->heap = NULL;
	shelf->nr = 0;
	shelf->nr_heap = shelf->room = 0;
	shelf->order = 0;
}

void shelf_free(struct shelf *shelf)
{
	free(shelf->heap);
	pthread_mutex_destroy(&shelf->lock);
}

static bool before(const struct ktrt_task *a, const struct ktrt_task *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	return a->order < b->order;
}

static bool heap_put(struct shelf *shelf, struct ktrt_task *task)
{
	struct ktrt_task **heap = shelf->heap;
	size_t at = shelf->nr_heap;

	if (at == shelf->room) {
		size_t room = at ? at * 2 : 64;

		heap = realloc(heap, room * sizeof(struct ktrt_task *));
		if (!heap)
			return false;
		shelf->heap = heap;
		shelf->room = room;
	}
	task->order = shelf->order++;
	for (; at && before(task, heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = task;
	shelf->nr_heap++;
	return true;
}

static struct ktrt_task *heap_take(struct shelf *shelf)
{
	struct ktrt_task **heap = shelf->heap;
	struct ktrt_task *task = heap[0];
	struct ktrt_task *last = heap[--shelf->nr_heap];
	size_t nr = shelf->nr_heap, at = 0, child;

	while ((child = 2 * at + 1) < nr) {
		if (child + 1 < nr && before(heap[child + 1], heap[child]))
			child++;
		if (!before(heap[child], last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return task;
}

/* Under the lock: what others may see without it. */
static void show(struct shelf *shelf, int change)
{
	int top = shelf->nr_heap ? shelf->heap[0]->priority : 0;

	if (shelf->first && top < 0)
		top = 0;
	at_poke(&shelf->top, top);
	at_store_seq(&shelf->nr, shelf->nr + (uint32_t)change);
}

bool shelf_put(struct shelf *shelf, struct ktrt_task *task)
{
	bool put = true;

	pthread_mutex_lock(&shelf->lock);
	if (task->priority) {
		put = heap_put(shelf, task);
	} else {
		task->next = NULL;
		*shelf->end = task;
		shelf->end = &task->next;
	}
	if (put)
		show(shelf, 1);
	pthread_mutex_unlock(&shelf->lock);
	return put;
}

static struct ktrt_task *list_take(struct shelf *shelf)
{
	struct ktrt_task *task = shelf->first;

	shelf->first = task->next;
	if (!shelf->first)
		shelf->end = &shelf->first;
	return task;
}

/* Priority 0 stands in the list. */
static bool list_is_next(const struct shelf *shelf)
{
	if (!shelf->nr_heap)
		return true;
	return shelf->first && shelf->heap[0]->priority < 0;
}

struct ktrt_task *shelf_take(struct shelf *shelf,
			     bool (*wanted)(struct ktrt_task *task, void *arg),
			     void *arg)
{
	struct ktrt_task *task;
	bool list;

	if (!shelf_has(shelf))
		return NULL;
	pthread_mutex_lock(&shelf->lock);
	list = list_is_next(shelf);
	task = list ? shelf->first : shelf->heap[0];
	if (task && wanted && !wanted(task, arg))
		task = NULL;
	if (task) {
		task = list ? list_take(shelf) : heap_take(shelf);
		show(shelf, -1);
	}
	pthread_mutex_unlock(&shelf->lock);
	return task;
}
