/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A shelf: ready tasks of a node that no worker has in its queue, because they
 * have a priority, belong to a node, or were made ready by a thread that is no
 * worker.  Highest priority first, then the oldest.
 *
 * One lock a shelf.  What is looked at without it is a hint: the number of
 * tasks and the highest priority.
 */
#ifndef RUNTIME_SHELF_H
#define RUNTIME_SHELF_H

#include <pthread.h>

#include "atomic.h"

struct ktrt_task;

struct shelf {
	CACHE_ALIGNED uint32_t nr; /* in all */
	int top; /* the highest priority; only with nr */
	CACHE_ALIGNED pthread_mutex_t lock;
	struct ktrt_task *first, **end; /* priority 0 */
	struct ktrt_task **heap; /* other priorities */
	size_t nr_heap, room;
	uint64_t order;
};

void shelf_init(struct shelf *shelf);
void shelf_free(struct shelf *shelf);
/* false without memory, for a task with a priority */
bool shelf_put(struct shelf *shelf, struct ktrt_task *task);
/* shelf_take - the next task; if @wanted is given and does not want that one
 * NULL, as without a task */
struct ktrt_task *shelf_take(struct shelf *shelf,
			     bool (*wanted)(struct ktrt_task *task, void *arg),
			     void *arg);

/* Is there a task that goes before those in the workers' queues? */
static inline bool shelf_urgent(const struct shelf *shelf)
{
	return at_load_seq(&shelf->nr) && at_peek(&shelf->top) > 0;
}

static inline bool shelf_has(const struct shelf *shelf)
{
	return at_load_seq(&shelf->nr) != 0;
}

#endif /* RUNTIME_SHELF_H */
