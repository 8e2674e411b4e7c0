/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A worker's queue: its owner pushes and pops at the bottom, thieves take from
 * the top.  After Chase and Lev, "Dynamic circular work-stealing deque" (SPAA
 * 2005), with sequentially consistent accesses in place of fences as in Le,
 * Pop, Cohen and Zappa Nardelli (PPoPP 2013).
 *
 * Owns indexes and ring.  A ring that was outgrown is kept until the end, because a
 * thief may still read it.  All outgrown rings together are smaller than the last.
 *
 * Locking: there is no lock.
 *
 *	O: the owner; while there is none who makes or retires its record
 *	T: thieves, and the owner for the last task: by compare-and-swap
 *	I: set before others can find it, constant from then on
 *	A: read by any thread: by atomic operations
 */
#ifndef RUNTIME_DEQUE_H
#define RUNTIME_DEQUE_H

#include <stdlib.h>

#include "atomic.h"

struct ktrt_task;

struct ring {
	struct ring *older; /* I */
	int64_t mask; /* I */
	struct ktrt_task *slots[]; /* O, A */
};

struct deque {
	CACHE_ALIGNED int64_t top; /* T, A */
	CACHE_ALIGNED int64_t bottom; /* O, A */
	int64_t top_seen; /* top was at least this; O */
	struct ring *ring; /* O, A */
	/* It held plenty; see sched_plenty().  Set by O, cleared by any; A */
	uint32_t plenty;
};

static inline struct ring *ring_new(int64_t size, struct ring *older)
{
	struct ring *ring =
		malloc(sizeof(*ring) + (size_t)size * sizeof(ring->slots[0]));

	if (!ring)
		return NULL;
	ring->older = older;
	ring->mask = size - 1;
	return ring;
}

static inline bool deque_init(struct deque *deque)
{
	deque->top = deque->bottom = deque->top_seen = 0;
	deque->plenty = 0;
	deque->ring = ring_new(512, NULL);
	return deque->ring != NULL;
}

static inline void deque_free(struct deque *deque)
{
	struct ring *ring = deque->ring, *older;

	for (; ring; ring = older) {
		older = ring->older;
		free(ring);
	}
}

/* About how many; exact for the owner as far as only thieves change it. */
static inline int64_t deque_size(const struct deque *deque)
{
	return at_load_seq(&deque->bottom) - at_load_seq(&deque->top);
}

/* By the owner: so many, or more? */
static inline bool deque_holds(struct deque *deque, int64_t nr)
{
	int64_t bottom = at_peek(&deque->bottom);

	if (likely(bottom - deque->top_seen < nr))
		return false;
	deque->top_seen = at_load(&deque->top);
	return bottom - deque->top_seen >= nr;
}

static inline bool deque_grow(struct deque *deque, int64_t top, int64_t bottom)
{
	struct ring *old = deque->ring;
	struct ring *ring = ring_new((old->mask + 1) * 2, old);

	if (!ring)
		return false;
	for (int64_t i = top; i < bottom; i++)
		at_poke(&ring->slots[i & ring->mask],
			at_peek(&old->slots[i & old->mask]));
	at_store(&deque->ring, ring);
	return true;
}

/*
 * By the owner.  Return: false without memory.  The store of bottom is sequentially
 * consistent: whoever pushes checks next whether to wake a worker, and a worker that
 * goes to sleep first says so and then reads bottom.
 */
static inline bool deque_push(struct deque *deque, struct ktrt_task *task)
{
	int64_t bottom = at_peek(&deque->bottom);

	if (unlikely(bottom - deque->top_seen > deque->ring->mask)) {
		deque->top_seen = at_load(&deque->top);
		if (bottom - deque->top_seen > deque->ring->mask &&
		    !deque_grow(deque, deque->top_seen, bottom))
			return false;
	}
	at_poke(&deque->ring->slots[bottom & deque->ring->mask], task);
	at_store_seq(&deque->bottom, bottom + 1);
	return true;
}

/* By the owner: the newest, or NULL. */
static inline struct ktrt_task *deque_pop(struct deque *deque)
{
	int64_t bottom = at_peek(&deque->bottom) - 1;
	int64_t top = at_peek(&deque->top);
	struct ktrt_task *task;

	if (top > bottom)
		return NULL;
	at_store_seq(&deque->bottom, bottom);
	top = at_load_seq(&deque->top);
	task = at_peek(&deque->ring->slots[bottom & deque->ring->mask]);
	if (top < bottom)
		return task;
	/* The last one, if any: race the thieves for it. */
	if (top > bottom || !at_cas(&deque->top, &top, top + 1))
		task = NULL;
	at_store(&deque->bottom, bottom + 1);
	return task;
}

/*
 * By any thread.  Return: the oldest task; NULL if there is none, or another thief was
 * faster.  @wanted may be called for a task that is gone already.  Its answer then does
 * not count: the task is taken only if it is still at the top afterwards, and then it
 * was there all the time.
 */
static inline struct ktrt_task *
deque_steal(struct deque *deque,
	    bool (*wanted)(struct ktrt_task *task, void *arg), void *arg)
{
	int64_t top = at_load_seq(&deque->top);
	int64_t bottom = at_load_seq(&deque->bottom);
	struct ktrt_task *task;
	struct ring *ring;

	if (top >= bottom)
		return NULL;
	ring = at_load(&deque->ring);
	task = at_peek(&ring->slots[top & ring->mask]);
	if (wanted && !wanted(task, arg))
		return NULL;
	return at_cas(&deque->top, &top, top + 1) ? task : NULL;
}

#endif /* RUNTIME_DEQUE_H */
