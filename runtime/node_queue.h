/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A node queue: ready tasks of a node that no worker has in its queue, because
 * they have a priority, belong to a node, or were made ready by a thread that is no
 * worker.  Highest priority first, then the oldest.
 *
 * One lock a node queue.  What is looked at without it is a hint: the number of
 * tasks and the highest priority.
 */
#ifndef RUNTIME_NODE_QUEUE_H
#define RUNTIME_NODE_QUEUE_H

#include <pthread.h>

#include "atomic.h"

struct ktrt_task;

struct node_queue {
	CACHE_ALIGNED uint32_t nr; /* in all */
	int top; /* the highest priority; only with nr */
	CACHE_ALIGNED pthread_mutex_t lock;
	struct ktrt_task *first, **end; /* priority 0 */
	struct ktrt_task **heap; /* other priorities */
	size_t nr_heap, capacity;
	uint64_t order;
};

void node_queue_init(struct node_queue *queue);
void node_queue_free(struct node_queue *queue);
/* false without memory, for a task with a priority */
bool node_queue_put(struct node_queue *queue, struct ktrt_task *task);
/* node_queue_take - the next task; if @wanted is given and does not want that one
 * NULL, as without a task */
struct ktrt_task *
node_queue_take(struct node_queue *queue,
		bool (*wanted)(struct ktrt_task *task, void *arg), void *arg);

/* Is there a task that goes before those in the workers' queues? */
static inline bool node_queue_urgent(const struct node_queue *queue)
{
	return at_load_seq(&queue->nr) && at_peek(&queue->top) > 0;
}

static inline bool node_queue_has(const struct node_queue *queue)
{
	return at_load_seq(&queue->nr) != 0;
}

#endif /* RUNTIME_NODE_QUEUE_H */
