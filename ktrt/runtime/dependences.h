/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Dependences.  The tasks that use a datum form a chain of epochs.  The members of an
 * epoch are one writer and any number of readers that follow it, or any number of
 * readers, of commuting tasks, or of tasks of one reduction, that follow each other
 * directly.  An epoch starts when all epochs before it are over.  Then its writer may
 * start, and the readers when that is complete; members without a writer start at once.
 *
 *	{W1 -> R2 R3 R4} -> {W5 -> R6 ...       the last epoch is open
 *
 * Only the parent's thread adds to chains, as it makes children one after another.
 * Any thread ends tasks.  The two meet in one word of an epoch: the number of incomplete
 * members, plus one while the epoch is open to more members or has no successor; how many
 * of them wait; and whether they may start.  Whoever takes the number of members to 0
 * starts the next epoch.  So nothing is locked, and an epoch is freed as soon as it is over.
 *
 * What costs is not instructions but cache lines that the thread that makes tasks and those
 * that complete them write by turns.  So a writer and its readers share a record, which has
 * one line, and lists the first members that wait in that line.
 *
 * If a task fails, the data that it writes is spoilt.  Each epoch passes that on to the
 * next, and members that read the data are skipped.  Data is good again after a task that
 * only writes it, or once a wait has reported the failure to the parent.  That holds also
 * for chains whose epochs are not over when the wait returns: a child that names data
 * weakly may be complete before the data is ready.
 *
 * A dependence that is weak or released early is entered for a *proxy* in place of the
 * task; see proxies.h.
 *
 * Locking:
 *
 *	B: the thread that runs the parent's body.  This includes all that leads to
 *	   chains: tails, struct domain (domain.h), struct ranges (ranges.c)
 *	N: the same thread, until it gives up the reference that it has in the count;
 *	   from then on the thread that takes the count to 0
 *	V: the thread that starts the epoch: the one that ended the epoch before
 *	Q: the lock of turns, an innermost one (rt.h)
 *	A: any thread: by atomic operations
 */
#ifndef RUNTIME_DEPS_H
#define RUNTIME_DEPS_H

#include "rt.h"

/* Members that commute use the data one after another; see commutative.c. */
struct turns {
	/* Members that wait for their turn, by ->next; Q */
	struct ktrt_task *first;
	struct ktrt_task **end; /* NULL: nobody has the turn; Q */
};

/* Members of a reduction add to copies, one a thread; see reduction.c. */
struct sum {
	const struct ktrt_reduction *of; /* N */
	/* One for each worker's slot, or NULL; A.  What a copy has is written by its
	 * worker, and later by the thread that ends the epoch, or B */
	void **copies;
};

/* Further members that wait; N, and freed with the epoch. */
#define WAITERS_MORE 6

struct waiters {
	struct waiters *older;
	uint32_t first; /* how many wait besides these and younger ones */
	struct ktrt_task *tasks[WAITERS_MORE];
};

#define WAITERS_INLINE 3

struct epoch {
	/* EPOCH_STARTED, or'ed with so many times EPOCH_WAITER as members wait to start,
	 * and the number of members, as above; A */
	uint64_t state;
	struct epoch *next; /* set before it can be over, or NULL; N */
	/* B; also read by the thread that lets these members start: A */
	struct waiters *more;
	/* enum ktrt_mode of the writer, or else of all members; N.  Also the flags below,
	 * which members and the thread that ends the epoch before add; A */
	uint32_t kind;
	uint32_t lock; /* of the turns: Q */
	union {
		struct ktrt_task *writer; /* N */
		/* EPOCH_HELD: the next successor of the same epoch; N; later in the
		 * list of V */
		struct epoch *sibling;
	};
	union {
		struct ktrt_task *waiters[WAITERS_INLINE]; /* the first; N */
		struct {
			struct ktrt_task *waiter; /* the same, but only one */
			union {
				struct turns turns; /* KTRT_COMMUTATIVE */
				struct sum sum; /* KTRT_REDUCTION */
			};
		};
	};
};

#define EPOCH_WAITER (1ull << 32)
/* Its members may start; those of a writer when that is complete.  None waits any more. */
#define EPOCH_STARTED (1ull << 63)

enum {
	EPOCH_MODE = 15,
	EPOCH_ADDS = KTRT_REDUCTION & ~KTRT_INOUT,
	/* It has no writer, though it has that mode: its place is empty until it starts. */
	EPOCH_HELD = 16,
	EPOCH_FOUND = 32, /* the data was spoilt when it was started */
	/* The data is spoilt for readers that follow the writer, and for the next epoch, */
	EPOCH_LEAVES = 64,
	/* unless a wait has reported the failure meanwhile. */
	EPOCH_FORGIVEN = 128,
};

/* How many wait, by the value of ->state */
static inline uint32_t count_waiting(uint64_t state)
{
	return (uint32_t)((state & ~EPOCH_STARTED) / EPOCH_WAITER);
}

static inline unsigned epoch_mode(const struct epoch *epoch)
{
	return at_peek(&epoch->kind) & EPOCH_MODE;
}

/* A record of the pool that ranges.c uses, too. */
_Static_assert(sizeof(struct epoch) <= 64 && sizeof(struct waiters) <= 64,
	       "an epoch is a small record");

/* Does an epoch of this mode have one writer? */
static inline bool mode_excludes(unsigned mode)
{
	return (mode | KTRT_IN) == KTRT_INOUT;
}

/* How many waiting members does its record list? */
static inline uint32_t waiters_inline(unsigned mode)
{
	return likely(mode <= KTRT_INOUT) ? WAITERS_INLINE : 1;
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

/* A task that names a datum in several modes enters its chain in the strictest one, by
 * this order.  RANK_WEAK is used only by proxies_enter.c. */
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
 * @ready: set to true if it may start now; otherwise deps_done() of another task will
 *	add it to a list of ready tasks
 *
 * Return: 0 or -ENOMEM; nothing is entered then.
 */
int deps_add(struct worker *w, struct ktrt_task *task,
	     const struct ktrt_dep *deps, size_t nr, bool *ready);

/* deps_add() in steps.  1: the domain of the parent's children, NULL without memory. */
struct domain *deps_domain(struct ktrt_task *parent);
/* 2: make chains for all data that is named, in one call; 0 or -ENOMEM. */
int deps_prepare(struct worker *w, struct domain *domain,
		 const struct ktrt_dep *deps, size_t nr);
/* 3: how many chains does one dependence have then? */
size_t deps_count(const struct domain *domain, const struct ktrt_dep *dep);
/* 4: memory for so many members, and as many small records, on the list *@fresh; 0 or
 * -ENOMEM. */
int deps_alloc(struct worker *w, struct ktrt_task *task, size_t nr,
	       struct record **fresh);
/* 5: the caller takes a new serial number in the domain, sets @task->pending to more than
 * the number of chains, and calls this for each dependence.  Return: how many chains the
 * task must wait for. */
uint32_t deps_enter(struct worker *w, struct ktrt_task *task,
		    struct domain *domain, const struct ktrt_dep *dep,
		    struct record **fresh);
/* 6: give back the records that are left on the list. */
void deps_free_fresh(struct worker *w, struct record *fresh);

/* ---- epochs.c ---- */

/* It is open, and has one member. */
static inline void epoch_init(struct epoch *epoch, unsigned kind,
			      uint64_t state)
{
	at_poke(&epoch->state, state + 2);
	epoch->next = NULL;
	at_poke(&epoch->more, NULL);
	epoch->kind = kind;
	epoch->writer = NULL;
}

/* NULL without memory */
static inline struct epoch *epoch_new(struct worker *w, unsigned kind)
{
	struct epoch *epoch = pool_get(&rt.smalls, &w->smalls);

	if (epoch)
		epoch_init(epoch, kind, 0);
	return epoch;
}

void epoch_free_waiters(struct worker *w, struct epoch *epoch);

static inline void epoch_free(struct worker *w, struct epoch *epoch)
{
	if (at_peek(&epoch->more))
		epoch_free_waiters(w, epoch);
	pool_put(&rt.smalls, w ? &w->smalls : NULL, epoch);
}

/* One member less, which is no writer, or none that is to come; tasks that become ready by
 * that are added to @ready. */
void epoch_put(struct worker *w, struct epoch *epoch, struct ready *ready);

/* deps_done - the task is complete: it leaves its epochs */
void deps_done(struct worker *w, struct ktrt_task *task, struct ready *ready);

/* Is the only reference left the one that keeps the epoch open? */
static inline bool epoch_is_over(const struct epoch *epoch)
{
	return (uint32_t)at_load(&epoch->state) == 1;
}

/* ---- domain.c ---- */

/* The end of a chain, by which it is found, and the task that entered last. */
struct tail {
	struct epoch *epoch; /* open, or NULL: nobody uses the datum */
	uint64_t serial; /* of deps_add(): a task enters a chain once */
};

/* May the chain be forgotten?  @forgiven: the serial number up to which failures were
 * reported; the data of a chain that is over since then may count as good. */
bool tail_is_dead(const struct tail *tail, uint64_t forgiven);

/* deps_settle - a wait has found that all children of the parent are complete */
void deps_settle(struct ktrt_task *parent);

/* deps_forgive - a wait has reported a failure to the parent: tasks that the parent makes
 * from now on are not skipped because of it */
void deps_forgive(struct ktrt_task *parent);

/* deps_close - the parent makes no more children */
void deps_close(struct worker *w, struct ktrt_task *parent);

/* ---- commutative.c ---- */

void turns_init(struct epoch *epoch);
/* The dependences of @task are met: take the turn at each of its data.  Return: false if
 * it has to wait; the task that gives up the turn then makes it ready. */
bool turns_take(struct ktrt_task *task);
/* The task is complete and gives up its turns.  Tasks that have all their turns by that
 * are added to @ready. */
void turns_give(struct ktrt_task *task, struct ready *ready);

/* Must the task still take turns? */
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
/* All members are complete: combine the copies into the datum. */
void sum_combine(struct sum *sum);

/* ---- proxies_enter.c ---- */

/*
 * proxies_add - as deps_add(), for a task with dependences that are weak or released early
 * @early: release early all dependences that can have a proxy
 */
int proxies_add(struct worker *w, struct ktrt_task *task,
		const struct ktrt_dep *deps, size_t nr, bool early,
		bool *ready);

/* ---- proxies.c ---- */

/* May a child of @parent, which has proxies, name @deps?  0 or -EINVAL. */
int proxies_check(const struct ktrt_task *parent, const struct ktrt_dep *deps,
		  size_t nr);
/* The body has ended.  Data that children still use is released when they are complete. */
void proxies_end(struct worker *w, struct ktrt_task *task);

/* ---- ranges.c ---- */

struct ranges;

/* ranges_new - a tree without segments; NULL without memory */
struct ranges *ranges_new(void);
/* ranges_tidy - forget segments that are out of use, if there are many */
void ranges_tidy(struct worker *w, struct ranges *ranges, uint64_t forgiven);
/* ranges_cut - cut segments so that one begins at @start and one ends at @end; 0 or
 * -ENOMEM */
int ranges_cut(struct worker *w, struct ranges *ranges, uintptr_t start,
	       uintptr_t end);
/*
 * ranges_next - the tail of the segment that begins at *@at
 *
 * Only in a range for which ranges_cut() was called.  *@at becomes the segment's end.
 */
struct tail *ranges_next(struct ranges *ranges, uintptr_t *at);
/* ranges_at - the tail of the segment that has @at, or NULL */
struct tail *ranges_at(struct ranges *ranges, uintptr_t at);
typedef void (*tail_func)(struct tail *tail, const struct domain *domain);
/* ranges_each - calls @func for each chain's tail */
void ranges_each(struct ranges *ranges, tail_func func,
		 const struct domain *domain);
/* ranges_steps - how many segments were visited so far, a measure of cost */
uint64_t ranges_steps(const struct ranges *ranges);
void ranges_free(struct worker *w, struct ranges *ranges);

#endif /* RUNTIME_DEPS_H */
