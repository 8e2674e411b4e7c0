/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Dependences.  The tasks that use a datum form a chain of epochs.  The members of an
 * epoch are one writer, or any number of readers, of commuting tasks, or of tasks of one
 * reduction, that follow each other directly.  They may start when all epochs before
 * theirs are over.
 *
 *	W1 -> {R2 R3 R4} -> W5 -> {R6 ...       the last epoch is open
 *
 * Only the parent's thread adds to chains, as it makes children one after another.
 * Any thread ends tasks.  The two meet in an epoch's count: the number of incomplete
 * members, plus one while the epoch is open to more members or has no successor.
 * Whoever takes the count to 0 starts the next epoch.  So nothing is locked, and an
 * epoch is freed as soon as it is over.
 *
 * A task that fails leaves what it writes spoilt.  Each epoch passes that on to the
 * next, and members that read are skipped.  It ends with a task that only writes, or
 * when a wait has reported it to the parent: also where children are complete that are
 * still members, as the data is not ready that they name weakly.
 *
 * A dependence that is weak or released early is entered for a *proxy* in place of the
 * task; see proxies.h.
 *
 * Locking:
 *
 *	B: the thread that does the parent's body; so all of what leads to chains: tails,
 *	   struct domain (domain.h), struct ranges (ranges.c)
 *	N: the same, before it takes its one from the count; then who takes that to 0
 *	V: who starts the epoch: the thread that ended the one before
 *	Q: the lock of turns, an innermost one (rt.h)
 *	A: any thread: by atomic operations
 */
#ifndef RUNTIME_DEPS_H
#define RUNTIME_DEPS_H

#include "rt.h"

/* Members that commute use the data one after another; see commutative.c. */
struct turns {
	struct access *first, **end; /* they wait for their turn; Q */
	uint32_t lock; /* Q */
	bool taken; /* Q */
};

/* Members of a reduction add to copies, one a thread; see reduction.c. */
struct sum {
	const struct ktrt_reduction *of; /* N */
	/* By the worker's slot; NULL: none yet.  A; each the worker's own, then of
	 * who ends the epoch, or B */
	void **copies;
};

struct epoch {
	/* Members; EPOCH_STARTED when they may start; A; of a writer N */
	struct access *waiting;
	struct epoch *next; /* set before the count can reach 0, or NULL; N */
	/* Ranges: another successor of the same; N; then the list of V */
	struct epoch *sibling;
	uint32_t count; /* A */
	/* enum ktrt_mode of its members, and these: N; what members, and who ends the
	 * one before, add: A */
	uint32_t kind;
	union {
		struct turns turns; /* KTRT_COMMUTATIVE */
		struct sum sum; /* KTRT_REDUCTION */
	};
};

#define EPOCH_STARTED ((struct access *)1)

enum {
	EPOCH_MODE = 15,
	EPOCH_ADDS = KTRT_REDUCTION & ~KTRT_INOUT,
	EPOCH_HELD = 16, /* counts for itself until it is started: no members */
	EPOCH_FOUND = 32, /* data that was spoilt when it was started; */
	EPOCH_LEAVES = 64, /* that is spoilt for the next one, */
	EPOCH_FORGIVEN = 128, /* unless a wait has forgiven it meanwhile */
};

static inline unsigned epoch_mode(const struct epoch *epoch)
{
	return at_peek(&epoch->kind) & EPOCH_MODE;
}

/* A record of the pool that ranges.c uses, too. */
_Static_assert(sizeof(struct epoch) <= 64, "an epoch is a small record");

/* Does an epoch of this mode have one member? */
static inline bool mode_excludes(unsigned mode)
{
	return (mode | KTRT_IN) == KTRT_INOUT;
}

/* Tasks whose dependences are met, linked by ->next, oldest first. */
struct ready {
	struct ktrt_task *first, **end;
};

static inline void ready_init(struct ready *ready)
{
	ready->first = NULL;
	ready->end = &ready->first;
}

static inline void ready_add(struct ready *ready, struct ktrt_task *task)
{
	task->next = NULL;
	*ready->end = task;
	ready->end = &task->next;
}

/* ---- dependences.c ---- */

/* The strictest modes first, in which a task enters its chains.  RANK_WEAK: for
 * proxies_enter.c. */
enum {
	RANK_WRITES,
	RANK_COMMUTES,
	RANK_REDUCES,
	RANK_READS,
	NR_RANKS,
	RANK_WEAK = NR_RANKS
};

static inline unsigned mode_rank(unsigned mode)
{
	return mode == KTRT_IN		  ? RANK_READS
	       : mode <= KTRT_INOUT	  ? RANK_WRITES
	       : mode == KTRT_COMMUTATIVE ? RANK_COMMUTES
	       : mode == KTRT_REDUCTION	  ? RANK_REDUCES
					  : RANK_WEAK;
}

/*
 * deps_add - enter @task into the chains of its parent
 * @ready: set to whether it may start now; else deps_done() of another task returns it
 *
 * Return: 0 or -ENOMEM; nothing is entered then.
 */
int deps_add(struct worker *w, struct ktrt_task *task,
	     const struct ktrt_dep *deps, size_t nr, bool *ready);

/* The same in steps.  First the domain, NULL without memory: */
struct domain *deps_domain(struct ktrt_task *parent);
/* chains for all that is named, in one call, 0 or -ENOMEM; */
int deps_prepare(struct worker *w, struct domain *domain,
		 const struct ktrt_dep *deps, size_t nr);
/* how many chains one dependence has then; */
size_t deps_count(const struct domain *domain, const struct ktrt_dep *dep);
/* memory for so many members, and epochs on the list *@fresh, 0 or -ENOMEM; */
int deps_alloc(struct worker *w, struct ktrt_task *task, size_t nr,
	       struct epoch **fresh);
/* another serial number in the domain, and for each dependence this.  Return: how many
 * chains it must wait for.  @task->pending was set to more than that. */
uint32_t deps_enter(struct worker *w, struct ktrt_task *task,
		    struct domain *domain, const struct ktrt_dep *dep,
		    struct epoch **fresh);
/* What is left of the list. */
void deps_free_fresh(struct worker *w, struct epoch *fresh);

/* ---- epochs.c ---- */

/* Open, without members; NULL without memory */
static inline struct epoch *epoch_new(struct worker *w, unsigned kind)
{
	struct epoch *epoch = pool_get(&rt.smalls, &w->smalls);

	if (!epoch)
		return NULL;
	epoch->waiting = NULL;
	epoch->next = epoch->sibling = NULL;
	epoch->count = 2;
	epoch->kind = kind;
	return epoch;
}

static inline void epoch_free(struct worker *w, struct epoch *epoch)
{
	pool_put(&rt.smalls, w ? &w->smalls : NULL, epoch);
}

/* Take one from the count; what that makes ready is added to the list. */
void epoch_put(struct worker *w, struct epoch *epoch, struct ready *ready);

/* deps_done - the task is complete: it leaves its epochs */
void deps_done(struct worker *w, struct ktrt_task *task, struct ready *ready);

/* Has it only the count that keeps it open? */
static inline bool epoch_is_over(const struct epoch *epoch)
{
	return at_load(&epoch->count) == 1;
}

/* ---- domain.c ---- */

/* What a chain is found by: the end of it, and who entered last. */
struct tail {
	struct epoch *epoch; /* open, or NULL: nobody uses the datum */
	uint64_t serial; /* of deps_add(): a task enters a chain once */
};

/* Does nothing of a chain matter any more?  @forgiven: what entered until then
 * and is over may have been spoilt. */
bool tail_is_dead(const struct tail *tail, uint64_t forgiven);

/* deps_settle - all children of the parent are complete, and a wait says so */
void deps_settle(struct ktrt_task *parent);

/* deps_forgive - a wait tells the parent that something failed: tasks that it
 * makes from here on are not skipped for what was over by now */
void deps_forgive(struct ktrt_task *parent);

/* deps_close - the parent makes no more children */
void deps_close(struct worker *w, struct ktrt_task *parent);

/* ---- commutative.c ---- */

void turns_init(struct turns *turns);
/* All dependences are met: wait for the turn at each of its data.  false: it has
 * to wait, and is found by who gives way. */
bool turns_take(struct ktrt_task *task);
/* The task is complete; what has its turns by that is added to the list. */
void turns_give(struct ktrt_task *task, struct ready *ready);

/* Is there a turn that it has to wait for? */
static inline bool turns_missing(const struct ktrt_task *task)
{
	return (task->flags & (TASK_TURNS | TASK_HAS_TURNS)) == TASK_TURNS;
}

/* All dependences are met: is it ready?  false: it has to wait for a turn.  Who makes an
 * undeferred task takes its turns. */
static inline bool turns_settle(struct ktrt_task *task)
{
	return likely(!turns_missing(task)) || task->flags & TASK_UNDEFERRED ||
	       turns_take(task);
}

/* ---- reduction.c ---- */

/* 0, -EINVAL, -E2BIG. */
int reduction_check(const struct ktrt_reduction *reduction);
/* All members are complete: the copies go into the datum. */
void sum_combine(struct sum *sum);

/* ---- proxies_enter.c ---- */

/*
 * proxies_add - as deps_add(), where dependences are weak or released early
 * @early: all that proxies can stand for are
 */
int proxies_add(struct worker *w, struct ktrt_task *task,
		const struct ktrt_dep *deps, size_t nr, bool early,
		bool *ready);

/* ---- proxies.c ---- */

/* May a child of @parent use these, if that has proxies?  0 or -EINVAL. */
int proxies_check(const struct ktrt_task *parent, const struct ktrt_dep *deps,
		  size_t nr);
/* The body has ended: what children still use is released when they are complete. */
void proxies_end(struct worker *w, struct ktrt_task *task);

/* ---- ranges.c ---- */

struct ranges;

/* ranges_new - none yet; NULL without memory */
struct ranges *ranges_new(void);
/* ranges_tidy - forget segments that are out of use, if there are many */
void ranges_tidy(struct worker *w, struct ranges *ranges, uint64_t forgiven);
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
typedef void (*tail_func)(struct tail *tail, const struct domain *domain);
/* ranges_each - calls @func for each chain's tail */
void ranges_each(struct ranges *ranges, tail_func func,
		 const struct domain *domain);
/* ranges_steps - what it has cost so far: segments that were looked at */
uint64_t ranges_steps(const struct ranges *ranges);
void ranges_free(struct worker *w, struct ranges *ranges);

#endif /* RUNTIME_DEPS_H */
