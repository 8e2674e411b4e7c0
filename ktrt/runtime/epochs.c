/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How epochs begin and end: tasks leave their epochs when they are complete.  The last
 * member starts the next epoch, which makes tasks ready.  These are returned to
 * task_complete.c in lists.  Does not own how tasks enter epochs (dependences.c).
 *
 * Locking: dependences.h.
 */
#include "dependences.h"

/* Decrement the count.  The owner of the last reference needs no atomic operation.  Return:
 * it was the last. */
static inline bool was_last(uint32_t *count)
{
	return at_load(count) == 1 || at_sub(count, 1) == 1;
}

static inline void dependence_met(struct ktrt_task *task, struct ready *ready)
{
	if (was_last(&task->pending))
		ready_add(ready, task);
}

void epoch_free_waiters(struct worker *w, struct epoch *epoch)
{
	struct waiters *more = at_load(&epoch->more), *older;

	for (; more; more = older) {
		older = more->older;
		pool_put(&rt.smalls, w ? &w->smalls : NULL, more);
	}
}

/* ---- members that wait ---- */

static void spoil_waiter(struct ktrt_task *task, struct ready *ready)
{
	task_spoil(task);
}

/*
 * Calls @func for @nr tasks, the newest first.  The last of them may end the epoch, so that is
 * not touched afterwards.  ->more may have a record that its maker adds just now, for a
 * task that does not wait after all.
 */
static inline __attribute__((always_inline)) void
each_waiter(struct epoch *epoch, uint32_t nr,
	    void (*func)(struct ktrt_task *task, struct ready *ready),
	    struct ready *ready)
{
	uint32_t most = waiters_inline(epoch_mode(epoch));
	const struct waiters *more = nr > most ? at_load(&epoch->more) : NULL;

	for (; more; more = more->older)
		while (nr > more->first)
			func(more->tasks[--nr - more->first], ready);
	while (nr)
		func(epoch->waiters[--nr], ready);
}

static void __attribute__((noinline))
spoil_waiters(struct epoch *epoch, uint32_t nr)
{
	each_waiter(epoch, nr, spoil_waiter, NULL);
}

/* Members may start that were waiting, as @state said before they might. */
static inline void start_waiters(struct epoch *epoch, uint64_t state,
				 unsigned spoilt, struct ready *ready)
{
	uint32_t nr = count_waiting(state);

	if (!nr)
		return;
	/* A member that joins from now on may have run and failed already, and writes ->kind. */
	if (unlikely(at_peek(&epoch->kind) & spoilt))
		spoil_waiters(epoch, nr);
	each_waiter(epoch, nr, dependence_met, ready);
}

/* ---- the last member starts the next epoch ---- */

/* Not one that is held. */
static inline void epoch_start(struct epoch *epoch, struct ready *ready)
{
	if (likely(mode_excludes(epoch_mode(epoch))))
		dependence_met(epoch->writer, ready);
	else
		start_waiters(epoch, at_or(&epoch->state, EPOCH_STARTED),
			      EPOCH_FOUND, ready);
}

/* An epoch that is held may have a sibling. */
static inline struct epoch *sibling_of(const struct epoch *epoch)
{
	return unlikely(at_peek(&epoch->kind) & EPOCH_HELD) ? epoch->sibling
							    : NULL;
}

/* Tell all epochs that come next that the data is spoilt. */
static void spoil_next(const struct epoch *over)
{
	for (struct epoch *next = over->next; next; next = sibling_of(next)) {
		unsigned kind = at_or(&next->kind, EPOCH_FOUND | EPOCH_LEAVES);

		if ((kind & (EPOCH_MODE | EPOCH_HELD)) == KTRT_INOUT)
			task_spoil(next->writer);
	}
}

/* What only epochs of reductions, and those that leave spoilt data, need at their end. */
static void __attribute__((noinline)) end_special(struct epoch *epoch)
{
	if (epoch->kind & EPOCH_ADDS)
		sum_combine(&epoch->sum);
	if ((epoch->kind & (EPOCH_LEAVES | EPOCH_FORGIVEN)) == EPOCH_LEAVES)
		spoil_next(epoch);
}

/* Start the epochs after one that is over.  Those that are held are put on the list @more. */
static inline void start_next(const struct epoch *over, struct epoch **more,
			      struct ready *ready)
{
	struct epoch *next = over->next, *sibling;

	for (; next; next = sibling) {
		sibling = sibling_of(next);
		if (likely(!(at_peek(&next->kind) & EPOCH_HELD))) {
			epoch_start(next, ready);
			continue;
		}
		next->sibling = *more;
		*more = next;
	}
}

static inline bool member_leaves(struct epoch *epoch)
{
	return (uint32_t)at_load(&epoch->state) == 1 ||
	       (uint32_t)at_sub(&epoch->state, 1) == 1;
}

/* The writer, or what holds its place: the readers behind it start. */
static inline bool writer_leaves(struct epoch *epoch, struct ready *ready)
{
	uint64_t state = at_load(&epoch->state);

	if ((uint32_t)state == 1)
		return true;
	state = at_add(&epoch->state, EPOCH_STARTED - 1);
	start_waiters(epoch, state, EPOCH_LEAVES, ready);
	return (uint32_t)state == 1;
}

/* It is over, and by that perhaps some that are held. */
static void epoch_end(struct worker *w, struct epoch *epoch,
		      struct ready *ready)
{
	struct epoch *more = NULL;
	bool over = true;

	for (;;) {
		if (over) {
			if (unlikely(epoch->kind & (EPOCH_ADDS | EPOCH_LEAVES)))
				end_special(epoch);
			start_next(epoch, &more, ready);
			epoch_free(w, epoch);
		}
		epoch = more;
		if (likely(!epoch))
			return;
		more = epoch->sibling;
		over = writer_leaves(epoch, ready);
	}
}

void epoch_put(struct worker *w, struct epoch *epoch, struct ready *ready)
{
	if (member_leaves(epoch))
		epoch_end(w, epoch, ready);
}

/* ---- leaving ---- */

/* If the task failed, its output is spoilt.  Otherwise the data is good again, unless
 * another task has written it too. */
static void mark_data(const struct ktrt_task *task)
{
	bool failed = at_peek(&task->error);

	for (uint32_t i = 0; i < task->nr_access; i++) {
		struct epoch *epoch = access_epoch(&task->access[i]);
		unsigned role = task->access[i].bits & ACCESS_ROLE;

		if (role == ACCESS_READS)
			continue;
		if (failed)
			at_or(&epoch->kind, EPOCH_LEAVES);
		else if (role == ACCESS_WRITES)
			at_poke(&epoch->kind, epoch_mode(epoch));
	}
}

/* For a task that has failed, or one that takes turns. */
static void __attribute__((noinline))
leave_data(struct ktrt_task *task, struct ready *ready)
{
	if (at_peek(&rt.failures))
		mark_data(task);
	if (task->flags & TASK_TURNS)
		turns_give(task, ready);
}

void deps_done(struct worker *w, struct ktrt_task *task, struct ready *ready)
{
	if (unlikely(at_peek(&rt.failures) | (task->flags & TASK_TURNS)))
		leave_data(task, ready);
	for (uint32_t i = 0; i < task->nr_access; i++) {
		struct epoch *epoch = access_epoch(&task->access[i]);
		bool over = task->access[i].bits & ACCESS_WRITES
				    ? writer_leaves(epoch, ready)
				    : member_leaves(epoch);

		if (over)
			epoch_end(w, epoch, ready);
	}
}
