/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Commuting tasks, which may use a datum in any order, but one at a time.
 *
 * They are members of one epoch, as readers are.  Once all that a task depends on is
 * over, it takes a turn at each of its data, in the order of the epochs' addresses.  If
 * another task has the turn, it waits there, and continues with the next datum when that
 * task is complete.  So no task that has a turn waits for one at a lower address, and
 * there is no cycle.  A task that has all its turns is queued like any ready task.  An
 * undeferred task takes its turns when its maker has nothing else to do (task_wait.c).
 *
 * Owns the lists of tasks that wait.  Does not own epochs (dependences.c).
 *
 * Locking: dependences.h.  A task waits on one list at a time, and whoever takes it off
 * that list owns the task.
 *
 * Behaves badly with tasks that need many data: while such a task waits for one datum,
 * nobody else can use those at which it has the turn.
 */
#include "dependences.h"

void turns_init(struct epoch *epoch)
{
	epoch->lock = LOCK_FREE;
	epoch->turns.first = NULL;
	epoch->turns.end = NULL;
}

/* The next turn that the task needs, in the order of epochs' addresses; NULL: it has all. */
static struct epoch *next_turn(const struct ktrt_task *task,
			       const struct epoch *behind)
{
	struct epoch *next = NULL;

	for (uint32_t i = 0; i < task->nr_access; i++) {
		struct epoch *epoch = access_epoch(&task->access[i]);

		if (epoch_mode(epoch) != KTRT_COMMUTATIVE ||
		    (uintptr_t)epoch <= (uintptr_t)behind)
			continue;
		if (!next || (uintptr_t)epoch < (uintptr_t)next)
			next = epoch;
	}
	return next;
}

/* Return: true if it is the task's turn.  Otherwise another thread may take the task as soon
 * as the lock is dropped. */
static bool take_turn(struct ktrt_task *task, struct epoch *epoch)
{
	struct turns *turns = &epoch->turns;
	bool free;

	lock_take(&epoch->lock, RANK_INNER);
	free = !turns->end;
	if (free) {
		turns->end = &turns->first;
	} else {
		task->next = NULL;
		*turns->end = task;
		turns->end = &task->next;
	}
	lock_drop(&epoch->lock, RANK_INNER);
	return free;
}

/* Give up the turn.  Return: the member whose turn it is now, or NULL. */
static struct ktrt_task *give_turn(struct epoch *epoch)
{
	struct turns *turns = &epoch->turns;
	struct ktrt_task *next;

	lock_take(&epoch->lock, RANK_INNER);
	next = turns->first;
	if (next)
		turns->first = next->next;
	if (!turns->first)
		turns->end = next ? &turns->first : NULL;
	lock_drop(&epoch->lock, RANK_INNER);
	return next;
}

/* The task has its turn at this datum: it is skipped if the datum is spoilt. */
static void see_datum(struct ktrt_task *task, const struct epoch *epoch)
{
	if (unlikely(at_peek(&epoch->kind) & EPOCH_LEAVES))
		task_spoil(task);
}

/* Take all turns after that at @has, or all if that is NULL.  Return: false if the task has to
 * wait for one. */
static bool take_turns(struct ktrt_task *task, const struct epoch *has)
{
	struct epoch *epoch = next_turn(task, has);

	for (; epoch; epoch = next_turn(task, epoch)) {
		if (!take_turn(task, epoch))
			return false;
		see_datum(task, epoch);
	}
	at_or(&task->flags, TASK_HAS_TURNS);
	return true;
}

bool turns_take(struct ktrt_task *task)
{
	return take_turns(task, NULL);
}

void turns_give(struct ktrt_task *task, struct ready *ready)
{
	for (uint32_t i = 0; i < task->nr_access; i++) {
		struct epoch *epoch = access_epoch(&task->access[i]);
		struct ktrt_task *next = NULL;

		if (epoch_mode(epoch) == KTRT_COMMUTATIVE)
			next = give_turn(epoch);
		if (!next)
			continue;
		see_datum(next, epoch);
		if (take_turns(next, epoch))
			ready_add(ready, next);
	}
}
