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

/* Let the task wait for the epoch.  Return: false if the epoch has started. */
static bool epoch_wait(struct epoch *epoch, struct access *access)
{
	struct access *head = at_load(&epoch->waiting);

	do {
		if (head == EPOCH_STARTED)
			return false;
		access->next = head;
	} while (!at_cas(&epoch->waiting, &head, access));
	return true;
}

/* All members are complete and no other thread uses the epoch: use it again. */
static void epoch_renew(struct epoch *epoch)
{
	epoch->waiting = EPOCH_STARTED;
	epoch->sibling = NULL;
	at_poke(&epoch->count, 2);
}

/* Set fields of epochs that are neither of readers nor of a writer. */
static void __attribute__((noinline))
set_special(struct epoch *epoch, const struct ktrt_dep *dep)
{
	if (dep->mode == KTRT_COMMUTATIVE) {
		turns_init(&epoch->turns);
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

/* May a task with this dependence be a member, too?  What is forgiven others find there. */
static inline bool may_join(const struct epoch *epoch, unsigned mode,
			    const struct ktrt_dep *dep)
{
	const unsigned checked = EPOCH_MODE | EPOCH_FORGIVEN;

	return (at_peek(&epoch->kind) & checked) == mode &&
	       !mode_excludes(mode) &&
	       (mode != KTRT_REDUCTION || epoch->sum.of == dep->addr);
}

/* An epoch that is over and was of a reduction, or left the data spoilt. */
static void __attribute__((noinline))
renew_special(struct domain *domain, struct epoch *epoch, uint64_t entered,
	      struct access *access, const struct ktrt_dep *dep)
{
	bool spoilt = epoch->kind & EPOCH_LEAVES && entered > domain->forgiven;

	epoch_renew(epoch);
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
		task_spoil(access->task);
}

/* Enter an epoch whose members are all complete: the task has it for itself. */
static inline void enter_over(struct domain *domain, struct epoch *epoch,
			      uint64_t entered, struct access *access,
			      unsigned mode, const struct ktrt_dep *dep)
{
	access->epoch = epoch;
	if (unlikely(epoch->kind & (EPOCH_ADDS | EPOCH_LEAVES))) {
		renew_special(domain, epoch, entered, access, dep);
		return;
	}
	epoch_renew(epoch);
	set_mode(epoch, mode, dep);
}

static bool join_epoch(struct epoch *epoch, struct access *access)
{
	at_add(&epoch->count, 1);
	access->epoch = epoch;
	if (epoch_wait(epoch, access))
		return true;
	if (unlikely(at_peek(&epoch->kind) & EPOCH_FOUND))
		task_spoil(access->task);
	return false;
}

/*
 * Let the task become a member of the chain, of its last epoch or of a new one from @fresh.
 * If the task waits for nothing else and the epochs before are over by now, it is put on
 * the list @ready.  @entered: the serial number at which the last task entered.
 *
 * Return: true if the task must wait for earlier epochs of the chain.
 */
static inline __attribute__((always_inline)) bool
chain_enter(struct worker *w, struct domain *domain, struct tail *tail,
	    uint64_t entered, struct epoch **fresh, struct access *access,
	    unsigned mode, const struct ktrt_dep *dep, struct ready *ready)
{
	struct epoch *last = tail->epoch;
	struct epoch *epoch = last;

	if (last && epoch_is_over(last)) {
		enter_over(domain, last, entered, access, mode, dep);
		return false;
	}
	if (last && may_join(last, mode, dep))
		return join_epoch(last, access);
	epoch = *fresh;
	*fresh = epoch->next;
	epoch->next = NULL;
	set_mode(epoch, mode, dep);
	epoch->waiting = last ? access : EPOCH_STARTED;
	access->next = NULL;
	access->epoch = epoch;
	tail->epoch = epoch;
	if (!last)
		return false;
	last->next = epoch;
	epoch_put(w, last, ready);
	return true;
}

static bool __attribute__((noinline))
chain_enter_special(struct worker *w, struct domain *domain, struct tail *tail,
		    uint64_t entered, struct epoch **fresh,
		    struct access *access, const struct ktrt_dep *dep,
		    struct ready *ready)
{
	return chain_enter(w, domain, tail, entered, fresh, access, dep->mode,
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
				size_t nr, struct epoch **fresh)
{
	task->access = task->access_inline;
	if (nr > ACCESS_INLINE) {
		task->access = access_array_get(w, nr);
		if (!task->access)
			return -ENOMEM;
		task->flags |= TASK_ACCESS_ALLOCATED;
	}
	while (nr--) {
		struct epoch *epoch = epoch_new(w, KTRT_IN);

		if (!epoch)
			return -ENOMEM;
		epoch->next = *fresh;
		*fresh = epoch;
	}
	return 0;
}

void deps_free_fresh(struct worker *w, struct epoch *fresh)
{
	struct epoch *next;

	for (; fresh; fresh = next) {
		next = fresh->next;
		epoch_free(w, fresh);
	}
}

/* Return: how many chains the task must wait for because of this one: 0 or 1. */
static uint32_t enter_access(struct worker *w, struct ktrt_task *task,
			     struct domain *domain, struct tail *tail,
			     struct epoch **fresh, const struct ktrt_dep *dep,
			     struct ready *ready)
{
	uint64_t entered = tail->serial;
	unsigned mode = dep->mode;
	struct access *access;

	/* The task names the datum twice.  It entered by the stricter mode before. */
	if (tail->epoch && entered == domain->serial)
		return 0;
	access = &task->access[task->nr_access++];
	access->task = task;
	tail->serial = domain->serial;
	/* So the compiler knows below that the mode is IN, OUT or INOUT. */
	if (unlikely(mode > KTRT_INOUT))
		return chain_enter_special(w, domain, tail, entered, fresh,
					   access, dep, ready);
	return chain_enter(w, domain, tail, entered, fresh, access, mode, dep,
			   ready);
}

static inline uint32_t enter_dep(struct worker *w, struct ktrt_task *task,
				 struct domain *domain,
				 const struct ktrt_dep *dep,
				 struct epoch **fresh)
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
	struct epoch *fresh = epoch_new(w, dep->mode);
	struct ready met;

	if (!fresh)
		return -ENOMEM;
	ready_init(&met);
	task->access = task->access_inline;
	at_poke(&task->pending, 1);
	domain->serial++;
	*ready = !enter_access(w, task, domain,
			       &entry_of(domain, dep_addr(dep))->tail, &fresh,
			       dep, &met) ||
		 met.first;
	if (fresh)
		epoch_free(w, fresh);
	return 0;
}

static uint32_t enter_deps(struct worker *w, struct ktrt_task *task,
			   struct domain *domain, const struct ktrt_dep *deps,
			   size_t nr, unsigned ranks, struct epoch **fresh)
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

/* Any number of dependences of any kind.  Their chains exist. */
static int add_many(struct worker *w, struct domain *domain,
		    struct ktrt_task *task, const struct ktrt_dep *deps,
		    size_t nr, unsigned ranks, bool *ready)
{
	size_t members = count_members(domain, deps, nr);
	struct epoch *fresh = NULL;
	uint32_t waits, most;

	if (unlikely(ranks & 1u << RANK_REDUCES))
		domain->sums = true;
	if (alloc_members(w, task, members, &fresh)) {
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
	       struct epoch **fresh)
{
	return alloc_members(w, task, nr, fresh);
}

uint32_t deps_enter(struct worker *w, struct ktrt_task *task,
		    struct domain *domain, const struct ktrt_dep *dep,
		    struct epoch **fresh)
{
	return enter_dep(w, task, domain, dep, fresh);
}
