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

static void dependence_met(struct ktrt_task *task, struct ready *ready)
{
	if (was_last(&task->pending))
		ready_add(ready, task);
}

static void __attribute__((noinline)) spoil_members(struct access *access)
{
	for (; access; access = access->next)
		task_spoil(access->task);
}

static void epoch_start(struct epoch *epoch, struct ready *ready)
{
	struct access *access, *next;

	/* The task of a writer was its only member from the start, and no other joins. */
	if (mode_excludes(epoch_mode(epoch))) {
		if (epoch->waiting)
			dependence_met(epoch->waiting->task, ready);
		return;
	}
	access = at_swap(&epoch->waiting, EPOCH_STARTED);
	/* A member that joins from now on may have run and failed already, and writes ->kind. */
	if (unlikely(at_peek(&epoch->kind) & EPOCH_FOUND))
		spoil_members(access);
	for (; access; access = next) {
		next = access->next;
		dependence_met(access->task, ready);
	}
}

/* Tell all epochs that come next that the data is spoilt. */
static void spoil_next(const struct epoch *over)
{
	for (struct epoch *next = over->next; next; next = next->sibling) {
		at_or(&next->kind, EPOCH_FOUND | EPOCH_LEAVES);
		if (epoch_mode(next) == KTRT_INOUT && next->waiting)
			task_spoil(next->waiting->task);
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

/*
 * Start the epochs after one that is over.  An epoch without members may be over as soon as
 * it is started, and is put on the list @more.
 */
static void start_next(struct epoch *over, struct epoch **more,
		       struct ready *ready)
{
	struct epoch *next = over->next, *sibling;

	for (; next; next = sibling) {
		bool held = at_peek(&next->kind) & EPOCH_HELD;

		sibling = next->sibling;
		epoch_start(next, ready);
		if (held) {
			next->sibling = *more;
			*more = next;
		}
	}
}

void epoch_put(struct worker *w, struct epoch *epoch, struct ready *ready)
{
	struct epoch *more = NULL;

	for (;;) {
		if (was_last(&epoch->count)) {
			if (unlikely(epoch->kind & (EPOCH_ADDS | EPOCH_LEAVES)))
				end_special(epoch);
			start_next(epoch, &more, ready);
			epoch_free(w, epoch);
		}
		epoch = more;
		if (!epoch)
			return;
		more = epoch->sibling;
	}
}

/* ---- leaving ---- */

/* If the task failed, its output is spoilt.  Otherwise the data is good again, unless
 * another task has written it too. */
static void mark_data(const struct ktrt_task *task)
{
	bool failed = at_peek(&task->error);

	for (uint32_t i = 0; i < task->nr_access; i++) {
		struct epoch *epoch = task->access[i].epoch;
		unsigned mode = epoch_mode(epoch);

		if (failed && mode != KTRT_IN)
			at_or(&epoch->kind, EPOCH_LEAVES);
		else if (mode_excludes(mode))
			at_poke(&epoch->kind, mode);
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
	for (uint32_t i = 0; i < task->nr_access; i++)
		epoch_put(w, task->access[i].epoch, ready);
}
