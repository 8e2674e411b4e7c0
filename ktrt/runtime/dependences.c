/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How tasks enter chains of epochs.  The chain of an address is found in a table
 * (domain.h), those of a range by ranges.c.
 *
 * Locking: dependences.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "access_arrays.h"
#include "domain.h"

/* ---- chains ---- */

/* A small record of those that were reserved for the task. */
static inline void *take_fresh(struct worker *w, struct record **fresh)
{
	struct record *record = *fresh;

	if (likely(!record))
		return pool_get(&rt.smalls, &w->smalls);
	*fresh = record->next;
	return record;
}

/* List the task as the next one that waits, as number @nr.  It does so only once ->state
 * counts it. */
static inline void list_waiter(struct worker *w, struct epoch *epoch,
			       struct ktrt_task *task, uint32_t nr,
			       struct record **fresh)
{
	struct waiters *more = epoch->more;
	uint32_t most = waiters_inline(epoch_mode(epoch));

	if (likely(nr < most)) {
		epoch->waiters[nr] = task;
		return;
	}
	if (!more || nr - more->first == WAITERS_MORE) {
		struct waiters *newest = take_fresh(w, fresh);

		newest->older = more;
		newest->first = nr;
		more = newest;
		at_store(&epoch->more, newest);
	}
	more->tasks[nr - more->first] = task;
}

/* Set fields of epochs that are neither of readers nor of a writer. */
static void __attribute__((noinline))
set_special(struct epoch *epoch, const struct ktrt_dep *dep)
{
	if (dep->mode == KTRT_COMMUTATIVE) {
		turns_init(epoch);
		return;
	}
	epoch->sum.of = dep->addr;
	epoch->sum.copies = NULL;
}

static inline void set_mode(struct epoch *epoch, unsigned mode,
			    const struct ktrt_dep *dep)
{
	epoch->kind = mode;
	if (unlikely(mode > KTRT_INOUT))
		set_special(epoch, dep);
}

/*
 * May a task with this dependence be a member, too?  Readers may follow a writer.  What is
 * forgiven others find there.
 */
static inline bool may_join(const struct epoch *epoch, unsigned mode,
			    const struct ktrt_dep *dep)
{
	unsigned kind = at_peek(&epoch->kind) & (EPOCH_MODE | EPOCH_FORGIVEN);

	if (likely(mode <= KTRT_INOUT))
		return mode == KTRT_IN && kind <= KTRT_INOUT;
	return kind == mode &&
	       (mode != KTRT_REDUCTION || epoch->sum.of == dep->addr);
}

static inline uintptr_t access_bits(const struct epoch *epoch, unsigned mode)
{
	return (uintptr_t)epoch | (mode == KTRT_IN	? ACCESS_READS
				   : mode <= KTRT_INOUT ? ACCESS_WRITES
							: 0);
}

/* ->state of an epoch that may start at once, but for its members. */
static inline uint64_t started_state(unsigned mode)
{
	return mode_excludes(mode) ? 0 : EPOCH_STARTED;
}

/* All members are complete and no other thread uses the epoch: use it again. */
static inline void epoch_renew(struct worker *w, struct epoch *epoch,
			       unsigned mode)
{
	if (epoch->more) {
		epoch_free_waiters(w, epoch);
		at_poke(&epoch->more, NULL);
	}
	at_poke(&epoch->state, started_state(mode) + 2);
}

/* An epoch that is over and was of a reduction, or left the data spoilt. */
static void __attribute__((noinline))
renew_special(struct domain *domain, struct epoch *epoch, uint64_t entered,
	      struct ktrt_task *task, const struct ktrt_dep *dep)
{
	bool spoilt = epoch->kind & EPOCH_LEAVES && entered > domain->forgiven;

	if (epoch->kind & EPOCH_ADDS && may_join(epoch, dep->mode, dep)) {
		epoch->kind = dep->mode;
	} else {
		if (epoch->kind & EPOCH_ADDS)
			sum_combine(&epoch->sum);
		set_mode(epoch, dep->mode, dep);
	}
	if (!spoilt)
		return;
	epoch->kind |= EPOCH_FOUND | EPOCH_LEAVES;
	if (dep->mode & KTRT_IN)
		task_spoil(task);
}

/* Enter an epoch whose members are all complete: the task has it for itself. */
static inline void enter_over(struct worker *w, struct domain *domain,
			      struct epoch *epoch, uint64_t entered,
			      struct ktrt_task *task, unsigned mode,
			      const struct ktrt_dep *dep)
{
	epoch_renew(w, epoch, mode);
	if (unlikely(epoch->kind & (EPOCH_ADDS | EPOCH_LEAVES)))
		renew_special(domain, epoch, entered, task, dep);
	else
		set_mode(epoch, mode, dep);
}

/* The task is touched no more if it has to wait: true. */
static inline bool join_epoch(struct worker *w, struct epoch *epoch,
			      struct ktrt_task *task, unsigned mode,
			      struct record **fresh)
{
	uint64_t state = at_peek(&epoch->state), more = 1;
	/* What spoils readers is what the writer leaves. */
	unsigned spoilt = mode == KTRT_IN ? EPOCH_LEAVES : EPOCH_FOUND;

	if (!(state & EPOCH_STARTED)) {
		list_waiter(w, epoch, task, count_waiting(state), fresh);
		more += EPOCH_WAITER;
	}
	if (!(at_add(&epoch->state, more) & EPOCH_STARTED))
		return true;
	if (unlikely(at_peek(&epoch->kind) & spoilt))
		task_spoil(task);
	return false;
}

/* It waits for what comes before it. */
static inline void new_epoch(struct worker *w, struct epoch *epoch,
			     struct ktrt_task *task, unsigned mode,
			     const struct ktrt_dep *dep)
{
	bool writes = mode_excludes(mode);

	epoch_init(epoch, mode, writes ? 0 : EPOCH_WAITER);
	set_mode(epoch, mode, dep);
	if (writes)
		epoch->writer = task;
	else
		epoch->waiter = task;
}

/*
 * Let the task become a member of the chain, of its last epoch or of a new one.  If the task
 * waits for nothing else and the epochs before are over by now, it is put on the list
 * @ready.  @entered: the serial number at which the last task entered.
 *
 * Return: true if the task must wait for earlier epochs, or a writer, of the chain.
 */
static inline __attribute__((always_inline)) bool
chain_enter(struct worker *w, struct domain *domain, struct tail *tail,
	    uint64_t entered, struct record **fresh, struct ktrt_task *task,
	    unsigned mode, const struct ktrt_dep *dep, struct ready *ready)
{
	struct access *access = &task->access[task->nr_access++];
	struct epoch *last = tail->epoch, *epoch = last;

	access->bits = access_bits(last, mode);
	if (last && epoch_is_over(last)) {
		enter_over(w, domain, last, entered, task, mode, dep);
		return false;
	}
	if (last && may_join(last, mode, dep))
		return join_epoch(w, last, task, mode, fresh);
	epoch = take_fresh(w, fresh);
	access->bits = access_bits(epoch, mode);
	tail->epoch = epoch;
	if (!last) {
		epoch_init(epoch, mode, started_state(mode));
		set_mode(epoch, mode, dep);
		return false;
	}
	new_epoch(w, epoch, task, mode, dep);
	last->next = epoch;
	epoch_put(w, last, ready);
	return true;
}

static bool __attribute__((noinline))
chain_enter_special(struct worker *w, struct domain *domain, struct tail *tail,
		    uint64_t entered, struct record **fresh,
		    struct ktrt_task *task, const struct ktrt_dep *dep,
		    struct ready *ready)
{
	return chain_enter(w, domain, tail, entered, fresh, task, dep->mode,
			   dep, ready);
}

static bool names_range(const struct ktrt_dep *deps, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (deps[i].len)
			return true;
	return false;
}

/* ---- entering a task ---- */

struct domain *deps_domain(struct ktrt_task *parent)
{
	if (!parent->domain)
		parent->domain = calloc(1, sizeof(*parent->domain));
	return parent->domain;
}

static inline int alloc_members(struct worker *w, struct ktrt_task *task,
				size_t nr)
{
	task->access = task->access_inline;
	if (likely(nr <= ACCESS_INLINE))
		return 0;
	task->access = access_array_get(w, nr);
	if (!task->access)
		return -ENOMEM;
	task->flags |= TASK_ACCESS_ALLOCATED;
	return 0;
}

/* Each member needs one small record at most, for a new epoch or for those that wait. */
static int reserve_smalls(struct worker *w, size_t nr, struct record **fresh)
{
	while (nr--) {
		struct record *record = pool_get(&rt.smalls, &w->smalls);

		if (!record)
			return -ENOMEM;
		record->next = *fresh;
		*fresh = record;
	}
	return 0;
}

/* The same for members that enter next: of what the worker keeps nothing must be taken. */
static inline int reserve_next(struct worker *w, size_t nr,
			       struct record **fresh)
{
	return likely(nr <= w->smalls.nr_free) ? 0
					       : reserve_smalls(w, nr, fresh);
}

void deps_free_fresh(struct worker *w, struct record *fresh)
{
	struct record *next;

	for (; fresh; fresh = next) {
		next = fresh->next;
		pool_put(&rt.smalls, &w->smalls, fresh);
	}
}

/* Return: how many chains the task must wait for because of this one: 0 or 1. */
static uint32_t enter_access(struct worker *w, struct ktrt_task *task,
			     struct domain *domain, struct tail *tail,
			     struct record **fresh, const struct ktrt_dep *dep,
			     struct ready *ready)
{
	uint64_t entered = tail->serial;
	unsigned mode = dep->mode;

	/* The task names the datum twice.  It entered by the stricter mode before. */
	if (tail->epoch && entered == domain->serial)
		return 0;
	tail->serial = domain->serial;
	/* So the compiler knows below that the mode is IN, OUT or INOUT. */
	if (unlikely(mode > KTRT_INOUT))
		return chain_enter_special(w, domain, tail, entered, fresh,
					   task, dep, ready);
	return chain_enter(w, domain, tail, entered, fresh, task, mode, dep,
			   ready);
}

static inline uint32_t enter_dep(struct worker *w, struct ktrt_task *task,
				 struct domain *domain,
				 const struct ktrt_dep *dep,
				 struct record **fresh)
{
	uint32_t waits = 0;
	uintptr_t at, end;
	struct ready none;

	/* ->pending of the task does not fall to 0 here, so nothing becomes ready. */
	ready_init(&none);
	if (!domain->ranges)
		return enter_access(w, task, domain,
				    &entry_of(domain, dep_addr(dep))->tail,
				    fresh, dep, &none);
	for (dep_bounds(dep, &at, &end); at < end;)
		waits += enter_access(w, task, domain,
				      ranges_next(domain->ranges, &at), fresh,
				      dep, &none);
	return waits;
}

static inline int prepare_chains(struct worker *w, struct domain *domain,
				 const struct ktrt_dep *deps, size_t nr)
{
	uintptr_t at, end;

	if (!domain->ranges && names_range(deps, nr) &&
	    domain_begin_ranges(w, domain))
		return -ENOMEM;
	if (!domain->ranges)
		return domain_reserve(w, domain, nr);
	ranges_tidy(w, domain->ranges, domain->forgiven);
	for (size_t i = 0; i < nr; i++) {
		dep_bounds(&deps[i], &at, &end);
		if (ranges_cut(w, domain->ranges, at, end))
			return -ENOMEM;
	}
	return 0;
}

size_t deps_count(const struct domain *domain, const struct ktrt_dep *dep)
{
	size_t members = 0;
	uintptr_t at, end;

	if (!domain->ranges)
		return 1;
	for (dep_bounds(dep, &at, &end); at < end; members++)
		ranges_next(domain->ranges, &at);
	return members;
}

static size_t count_members(const struct domain *domain,
			    const struct ktrt_dep *deps, size_t nr)
{
	size_t members = 0;

	if (!domain->ranges)
		return nr;
	for (size_t i = 0; i < nr; i++)
		members += deps_count(domain, &deps[i]);
	return members;
}

/*
 * One address, the usual case.  As soon as the task has entered the chain it may run
 * and be freed, so it is not touched from then on.
 */
static int add_one(struct worker *w, struct ktrt_task *task,
		   struct domain *domain, const struct ktrt_dep *dep,
		   bool *ready)
{
	struct record *fresh = NULL;
	struct ready met;

	if (reserve_next(w, 1, &fresh))
		return -ENOMEM;
	ready_init(&met);
	task->access = task->access_inline;
	at_poke(&task->pending, 1);
	domain->serial++;
	*ready = !enter_access(w, task, domain,
			       &entry_of(domain, dep_addr(dep))->tail, &fresh,
			       dep, &met) ||
		 met.first;
	deps_free_fresh(w, fresh);
	return 0;
}

static uint32_t enter_deps(struct worker *w, struct ktrt_task *task,
			   struct domain *domain, const struct ktrt_dep *deps,
			   size_t nr, unsigned ranks, struct record **fresh)
{
	uint32_t waits = 0;

	for (unsigned rank = 0; rank < NR_RANKS; rank++)
		for (size_t i = 0; ranks & 1u << rank && i < nr; i++)
			if (mode_rank(deps[i].mode) == rank)
				waits += enter_dep(w, task, domain, &deps[i],
						   fresh);
	return waits;
}

static unsigned ranks_of(const struct ktrt_dep *deps, size_t nr)
{
	unsigned ranks = 0;

	for (size_t i = 0; i < nr; i++)
		ranks |= 1u << mode_rank(deps[i].mode);
	return ranks;
}

/*
 * Fetch what the next task will be made of: others have used these records, and their lines
 * may be in other caches.
 */
static inline void fetch_next(const struct worker *w)
{
	const struct ktrt_task *task = (const void *)w->tasks.free;

	if (w->smalls.free)
		fetch_to_write(w->smalls.free);
	if (!task)
		return;
	fetch_to_write(task);
	fetch_to_write(&task->live);
	fetch_to_write(task->access_inline);
}

/* Any number of dependences of any kind.  Their chains exist. */
static int add_many(struct worker *w, struct domain *domain,
		    struct ktrt_task *task, const struct ktrt_dep *deps,
		    size_t nr, unsigned ranks, bool *ready)
{
	size_t members = count_members(domain, deps, nr);
	struct record *fresh = NULL;
	uint32_t waits, most;

	if (unlikely(ranks & 1u << RANK_REDUCES))
		domain->sums = true;
	if (alloc_members(w, task, members) ||
	    reserve_next(w, members, &fresh)) {
		deps_free_fresh(w, fresh);
		return -ENOMEM;
	}
	if (unlikely(ranks & 1u << RANK_COMMUTES))
		task->flags |= TASK_TURNS;
	domain->serial++;
	/* Count as waiting for all chains, and once more until all are entered. */
	most = (uint32_t)members + 1;
	at_poke(&task->pending, most);
	waits = enter_deps(w, task, domain, deps, nr, ranks, &fresh);
	deps_free_fresh(w, fresh);
	*ready = !waits;
	if (waits)
		*ready = at_sub(&task->pending, most - waits) == most - waits;
	if (unlikely(ranks & 1u << RANK_COMMUTES) && *ready)
		*ready = turns_settle(task);
	fetch_next(w);
	return 0;
}

int deps_add(struct worker *w, struct ktrt_task *task,
	     const struct ktrt_dep *deps, size_t nr, bool *ready)
{
	struct domain *domain = deps_domain(task->parent);
	unsigned ranks;
	int error;

	rank_assert(w == self_worker && task->parent == w->current);
	if (!domain)
		return -ENOMEM;
	if (nr == 1 && !domain->special && !deps->len &&
	    deps->mode <= KTRT_INOUT) {
		if (domain_reserve(w, domain, 1))
			return -ENOMEM;
		return add_one(w, task, domain, deps, ready);
	}
	ranks = ranks_of(deps, nr);
	if (unlikely(ranks & 1u << RANK_WEAK))
		return proxies_add(w, task, deps, nr, false, ready);
	error = unlikely(domain->special)
			? proxies_check(task->parent, deps, nr)
			: 0;
	if (!error)
		error = prepare_chains(w, domain, deps, nr);
	return error ? error
		     : add_many(w, domain, task, deps, nr, ranks, ready);
}

/* ---- for proxies ---- */

int deps_prepare(struct worker *w, struct domain *domain,
		 const struct ktrt_dep *deps, size_t nr)
{
	return prepare_chains(w, domain, deps, nr);
}

int deps_alloc(struct worker *w, struct ktrt_task *task, size_t nr,
	       struct record **fresh)
{
	int error = alloc_members(w, task, nr);

	return error ? error : reserve_smalls(w, nr, fresh);
}

uint32_t deps_enter(struct worker *w, struct ktrt_task *task,
		    struct domain *domain, const struct ktrt_dep *dep,
		    struct record **fresh)
{
	return enter_dep(w, task, domain, dep, fresh);
}
