/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Dependences.  The tasks that use a datum form a chain of epochs: one writer,
 * or any number of readers that follow each other directly.  The members of an
 * epoch may start when all epochs before it are over.
 *
 *	W1 -> {R2 R3 R4} -> W5 -> {R6 ...       the last epoch is open
 *
 * Only the parent's thread adds to chains (children are made one after
 * another), anybody ends tasks; the two meet in an epoch's count, which is the
 * number of its members that are not complete, and one as long as it is open
 * to more or has no successor yet.  Whoever takes it to 0 starts the next
 * epoch.  So nothing is locked, and an epoch is freed as soon as it is over:
 * memory is for what is not complete.
 */
#ifndef RUNTIME_DEPS_H
#define RUNTIME_DEPS_H

#include "rt.h"

struct epoch {
	struct access *waiting; /* members; EPOCH_STARTED when they may start */
	struct epoch *next; /* set before the count can reach 0, or NULL */
	struct epoch *sibling; /* ranges: another successor of the same */
	uint32_t count;
	bool writes;
	bool held; /* counts for itself until it is started: no members */
};

#define EPOCH_STARTED ((struct access *)1)

/* Tasks that are ready, linked by ->next, oldest first. */
struct ready {
	struct ktrt_task *first, **end;
};

static inline void ready_init(struct ready *ready)
{
	ready->first = NULL;
	ready->end = &ready->first;
}

/*
 * deps_add - enter @task into the chains of its parent
 * @ready: set to whether it may start now; else deps_done() of others says so
 *
 * Return: 0 or -ENOMEM; nothing is entered then.
 */
int deps_add(struct worker *w, struct ktrt_task *task,
	     const struct ktrt_dep *deps, size_t nr, bool *ready);

/* deps_done - the task is complete: it leaves its epochs */
void deps_done(struct worker *w, struct ktrt_task *task, struct ready *ready);

/* deps_close - the parent makes no more children */
void deps_close(struct worker *w, struct ktrt_task *parent);

/* ---- between dependences.c and ranges.c ---- */

struct epoch *epoch_new(struct worker *w, bool writes);
/* Take one from the count; what that makes ready is added to the list. */
void epoch_put(struct worker *w, struct epoch *epoch, struct ready *ready);

/* Has it only the count that keeps it open? */
static inline bool epoch_is_over(const struct epoch *epoch)
{
	return at_load(&epoch->count) == 1;
}

/* What a chain is found by: the end of it, and who entered last. */
struct tail {
	struct epoch *epoch; /* open, or NULL: nobody uses the datum */
	uint64_t serial; /* of deps_add(): a task enters a chain once */
};

struct ranges;

/* ranges_new - none yet; NULL without memory */
struct ranges *ranges_new(void);
/* ranges_tidy - forget segments that are out of use, if there are many */
void ranges_tidy(struct worker *w, struct ranges *ranges);
/* ranges_cut - so that the range begins and ends where segments do; 0 or
 * -ENOMEM */
int ranges_cut(struct worker *w, struct ranges *ranges, uintptr_t start,
	       uintptr_t end);
/*
 * ranges_next - the tail of the segment that begins at *@at
 *
 * In a range that was cut.  *@at becomes the segment's end.
 */
struct tail *ranges_next(struct ranges *ranges, uintptr_t *at);
/* ranges_at - the tail of the segment that has @at, or NULL */
struct tail *ranges_at(struct ranges *ranges, uintptr_t at);
/* ranges_steps - what it has cost so far: segments that were looked at */
uint64_t ranges_steps(const struct ranges *ranges);
void ranges_free(struct worker *w, struct ranges *ranges);

#endif /* RUNTIME_DEPS_H */
