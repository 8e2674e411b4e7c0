/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A node queue: ready tasks of a node that are in no worker's queue, because they have a
 * priority, belong to a node, or were made ready by a thread that is no worker.  Highest
 * priority first, then the oldest.
 *
 * The tasks of one parent are a family, and can be found by their parent: a task that
 * waits for its children finds them however many others come before them.
 *
 * A task that an attached thread has left to workers is marked until one of them takes it.
 * If another attached thread would take it, that thread gets nothing, and notes it as well.
 *
 * The number of tasks and the highest priority are read without the lock, as hints.
 *
 * Locking:
 *
 *	Q: the queue's lock, which is an innermost one (rt.h)
 *	I: set before others can find it, constant from then on
 *	A: written under Q, read by any thread: by atomic operations
 */
#ifndef RUNTIME_NODE_QUEUE_H
#define RUNTIME_NODE_QUEUE_H

#include <pthread.h>

#include "atomic.h"

struct ktrt_group;
struct ktrt_task;
struct wait_filter;
struct worker;

#define FAMILY_BUCKETS 512

struct node_queue {
	CACHE_ALIGNED uint32_t nr; /* in all; A */
	int top; /* the highest priority; only with nr; A */
	CACHE_ALIGNED pthread_mutex_t lock; /* Q */
	struct ktrt_task *first, *last; /* priority 0; Q */
	struct ktrt_task **heap; /* other priorities; Q */
	size_t nr_heap, capacity; /* Q */
	uint64_t order; /* Q */
	/* FAMILY_BUCKETS: one of each.  I; what is there: Q */
	struct ktrt_task **families;
};

/* @families: FAMILY_BUCKETS of NULL */
void node_queue_init(struct node_queue *queue, struct ktrt_task **families);
void node_queue_free(struct node_queue *queue);
/* false without memory, for a task with a priority */
bool node_queue_put(struct node_queue *queue, struct ktrt_task *task);
/* node_queue_leave - the same by an attached thread, which leaves it to workers */
bool node_queue_leave(struct node_queue *queue, struct ktrt_task *task,
		      const struct worker *by);
/* node_queue_take - the next task, or NULL */
struct ktrt_task *node_queue_take(struct node_queue *queue);
/* node_queue_take_below - the next task if it is below @above, else a child of
 * that, or NULL */
struct ktrt_task *node_queue_take_below(struct node_queue *queue,
					struct ktrt_task *above);
/* node_queue_take_in - the same if it is of the group, or below one that is; else
 * a child of the group, if it is among the first of these */
struct ktrt_task *node_queue_take_in(struct node_queue *queue,
				     struct ktrt_task *above,
				     const struct ktrt_group *group);
/* node_queue_take_left - @left if it is in the queue with the mark @left_by and @filter does
 * not refuse it, or NULL */
struct ktrt_task *node_queue_take_left(struct node_queue *queue,
				       const struct ktrt_task *left,
				       uint32_t left_by,
				       const struct wait_filter *filter);
/* node_queue_take_wanted - a task that @filter wants, or NULL; goes through all */
struct ktrt_task *node_queue_take_wanted(struct node_queue *queue,
					 const struct wait_filter *filter);

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
