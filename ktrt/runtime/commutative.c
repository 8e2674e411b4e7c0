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

void turns_init(struct turns *turns)
{
	turns->first = NULL;
	turns->end = &turns->first;
	turns->lock = LOCK_FREE;
	turns->taken = false;
}

/* The next turn that the task needs, in the order of epochs' addresses; NULL: it has all. */
static struct access *next_turn(const struct ktrt_task *task,
				const struct epoch *behind)
{
	struct access *next = NULL;

	for (uint32_t i = 0; i < task->nr_access; i++) {
		struct access *access = &task->access[i];

		if (epoch_mode(access->epoch) != KTRT_COMMUTATIVE ||
		    (uintptr_t)access->epoch <= (uintptr_t)behind)
			continue;
		if (!next || (uintptr_t)access->epoch < (uintptr_t)next->epoch)
			next = access;
	}
	return next;
}

/* Return: true if it is the task's turn.  Otherwise another thread may take the task as soon
 * as the lock is dropped. */
static bool take_turn(struct access *access)
{
	struct turns *turns = &access->epoch->turns;
	bool free;

	lock_take(&turns->lock, RANK_INNER);
	free = !turns->taken;
	turns->taken = true;
	if (!free) {
		access->next = NULL;
		*turns->end = access;
		turns->end = &access->next;
	}
	lock_drop(&turns->lock, RANK_INNER);
	return free;
}

/* Give up the turn.  Return: the member whose turn it is now, or NULL. */
static struct access *give_turn(struct turns *turns)
{
	struct access *next;

	lock_take(&turns->lock, RANK_INNER);
	next = turns->first;
	if (next) {
		turns->first = next->next;
		if (!turns->first)
			turns->end = &turns->first;
	}
	turns->taken = next;
	lock_drop(&turns->lock, RANK_INNER);
	return next;
}

/* The task has its turn at this datum: it is skipped if the datum is spoilt. */
static void see_datum(const struct access *access)
{
	if (unlikely(at_peek(&access->epoch->kind) & EPOCH_LEAVES))
		task_spoil(access->task);
}

/* Take all turns after that at @has, or all if that is NULL.  Return: false if the task has to
 * wait for one. */
static bool take_turns(struct ktrt_task *task, const struct epoch *has)
{
	struct access *access = next_turn(task, has);

	for (; access; access = next_turn(task, access->epoch)) {
		if (!take_turn(access))
			return false;
		see_datum(access);
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
		struct epoch *epoch = task->access[i].epoch;
		struct access *access = NULL;

		if (epoch_mode(epoch) == KTRT_COMMUTATIVE)
			access = give_turn(&epoch->turns);
		if (!access)
			continue;
		see_datum(access);
		if (take_turns(access->task, epoch))
			ready_add(ready, access->task);
	}
}
