/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The state of a core, and which workers use it or sleep (park.c).
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_PARK_H
#define RUNTIME_PARK_H

#include <umt.h>

#include "runtime_state.h"
#include "worker.h"

struct core {
	CACHE_ALIGNED uint32_t lock; /* L */
	int cpu; /* I */
	unsigned index; /* I */
	int node; /* index of the node queue; I */
	unsigned cache; /* last-level cache; the workers' slots go by it; I */
	int active; /* workers here that the runtime has not put to sleep; L, A */
	/* Of these, without UMT, those that were blocked in a stall and whose task has
	 * neither ended nor waited since; L, A */
	int nr_stuck;
	struct worker *parked; /* an idle worker that last worked here; L */
	uint32_t nr_suspended; /* L, A */
	uint32_t arriving; /* a worker was woken and does not run yet; A */
	/* Workers that left in the middle of a task; oldest first; L */
	struct worker *suspended;
	struct worker **suspended_end; /* L */
	/* The worker that last left because the core was overloaded, or NULL; L */
	struct worker *leaver;
	uint32_t wants_thread; /* a request to the leader; A */
	struct worker *visitor; /* an attached thread; visit.c; or NULL; A */
	uint64_t
		served_ns; /* when it last got a worker as all were blocked; C */
	ktrt_func began; /* of the task that a worker last began there; A */
	ktrt_func early_func; /* tasks of it block early; C, A */
	uint32_t early; /* so many may begin although others are ready; A */
};

static inline void core_lock(struct core *core)
{
	lock_take(&core->lock, RANK_CORE);
}

static inline void core_unlock(struct core *core)
{
	lock_drop(&core->lock, RANK_CORE);
}

static inline void core_assert_locked(const struct core *core)
{
	rt_assert_locked(RANK_CORE);
	rank_assert(at_peek(&core->lock) != LOCK_FREE);
}

/* rt.idlers: idle cores, and workers that search for tasks. */
#define IDLERS_CORE 1ull
#define IDLERS_SEARCH (1ull << 32)

/*
 * Whoever wakes a worker first counts it as searching, so that nobody wakes another one
 * for the same task.
 */

/* Sleep until there may be tasks.  If w->maker is set afterwards, one task was handed
 * over, and the worker does not count as searching. */
void park_idle(struct worker *w);
/* Between two tasks: leave the core if two workers are ready there, or if a worker in
 * the middle of a task waits for it.  Returns at once or when woken. */
void park_overloaded(struct worker *w);
/*
 * In the middle of a task: let another worker have the core for one task: one that idles,
 * else one that yielded there, else, if tasks are queued, a new one.  @to_fresh: not one
 * that yielded.  Return: false if there is no such worker.
 */
bool park_yield(struct worker *w, bool to_fresh);
/* Sleep in the middle of a task until *@signal, at most for @limit_ns unless that is 0.
 * Another worker takes the core.  May return early. */
void park_until(struct worker *w, uint32_t *signal, uint64_t limit_ns);
/*
 * Wake the worker that sleeps on @core for a task in @maker's queue, if no other worker
 * uses that core.  It takes the task from there.  It does not count as searching, so
 * whoever queues another task wakes another worker.
 */
bool park_hand(struct core *core, struct worker *maker);
/*
 * Put a worker on a core that is idle: because it has no active workers, or because
 * they are @blocked.  Return: true if one comes; it takes over one count of searching.
 */
bool park_dispatch(struct core *core, bool blocked);
/* The same for a core whose active workers are blocked. */
bool park_reinforce(struct core *core);
/* The workers of a core are blocked and no tasks are queued: mark the core idle. */
void park_mark_idle(struct core *core);
/* Without UMT: all workers of the core are blocked.  From now on those inside tasks do not
 * count as ready until their task ends or waits. */
void park_stuck(struct core *core);
/* The calling worker was such a one, and its task has ended or waits. */
void park_goes_on(struct worker *w);
/* A new thread gets the core, or an attached thread visits it; under no lock. */
void park_arrive(struct core *core);
/* The thread could not be made, or the attached thread leaves: undo park_arrive(). */
void park_arrive_not(struct core *core, struct worker *visitor);
/* Take a worker off its list that sleeps because there are no tasks; or NULL. */
struct worker *park_take_idle(void);
/* Wake all workers, so that they see rt.stop. */
void park_wake_all(void);
/* All threads have ended: reset what was counted of them. */
void park_forget(void);
/* The thread of the worker ends inside a task or a wait. */
void park_gone(struct worker *w);

static inline void count_search(void)
{
	at_add(&rt.idlers, IDLERS_SEARCH);
}

static inline unsigned idle_cores(void)
{
	return (uint32_t)at_load_seq(&rt.idlers);
}

/* Workers that are ready on a core, as far as it is known. */
static inline int core_ready(const struct core *core)
{
	const struct umt_core *counts = rt_counts();

	return counts ? umt_ready(counts, core->cpu)
		      : at_peek(&core->active) - at_peek(&core->nr_stuck);
}

/* Must a worker call park_overloaded() between two tasks? */
static inline bool core_overloaded(const struct core *core)
{
	return at_peek(&core->nr_suspended) || core_ready(core) > 1;
}

#endif /* RUNTIME_PARK_H */
