/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns the chains of epochs, and the table of addresses that a parent's children use.
 * ranges.c is the other way to find a chain.  Once a parent uses a range, that way is
 * used for addresses too, as ranges of one byte, so that ranges and addresses meet.
 * Tasks that become ready are returned to task.c in lists.
 *
 * Behaves badly with very many data that are used once and for long: the table grows
 * with the number of incomplete tasks.
 *
 * Locking: dependences.h; entries and domains are B.
 */
/* length: a call between chains and tables would cost a part of a task */
#include <errno.h>
#include <stdlib.h>

#include "dependences.h"

struct entry {
	const void *addr;
	struct tail tail; /* no epoch: the entry is empty */
};

struct domain {
	struct entry *entries;
	size_t capacity; /* a power of two, or 0 */
	size_t used;
	uint64_t serial;
	uint64_t forgiven; /* the parent was told of what failed until then */
	bool sums; /* chains may have copies to be combined */
	struct ranges *ranges; /* NULL: the table has all; else it is empty */
};

#define CAPACITY_MIN 64

/* ---- epochs ---- */

struct epoch *epoch_new(struct worker *w, unsigned kind)
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

static void epoch_free(struct worker *w, struct epoch *epoch)
{
	pool_put(&rt.smalls, w ? &w->smalls : NULL, epoch);
}

/* Of counts that fall to 0: who has the last one needs nothing atomic. */
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

	/* A writer's task was there from the start, and nobody joins it. */
	if (mode_excludes(epoch_mode(epoch))) {
		if (epoch->waiting)
			dependence_met(epoch->waiting->task, ready);
		return;
	}
	access = at_swap(&epoch->waiting, EPOCH_STARTED);
	/* Who joins from here on may have failed already, and say so there. */
	if (unlikely(at_peek(&epoch->kind) & EPOCH_FOUND))
		spoil_members(access);
	for (; access; access = next) {
		next = access->next;
		dependence_met(access->task, ready);
	}
}

/* All that comes next finds spoilt data. */
static void spoil_next(const struct epoch *over)
{
	for (struct epoch *next = over->next; next; next = next->sibling) {
		at_or(&next->kind, EPOCH_FOUND | EPOCH_LEAVES);
		if (epoch_mode(next) == KTRT_INOUT && next->waiting)
			task_spoil(next->waiting->task);
	}
}

/* What few epochs need when they are over. */
static void __attribute__((noinline)) end_special(struct epoch *epoch)
{
	if (epoch->kind & EPOCH_ADDS)
		sum_combine(&epoch->sum);
	if (epoch->kind & EPOCH_LEAVES)
		spoil_next(epoch);
}

/*
 * Start the epochs after one that is over.  An epoch without members of its own may be
 * over by that, and is put on the list @more.
 */
static void start_next(struct epoch *over, struct epoch **more,
		       struct ready *ready)
{
	struct epoch *next = over->next, *sibling;

	for (; next; next = sibling) {
		bool held = next->kind & EPOCH_HELD;

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

/* The task waits for the epoch; false if that has started. */
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

/* All its members are complete and nobody else uses it: use it again. */
static void epoch_renew(struct epoch *epoch)
{
	epoch->waiting = EPOCH_STARTED;
	epoch->sibling = NULL;
	at_poke(&epoch->count, 2);
}

/* What those have besides that are of neither readers nor a writer. */
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

/* May a task with this dependence be a member, too? */
static inline bool may_join(const struct epoch *epoch, unsigned mode,
			    const struct ktrt_dep *dep)
{
	return epoch_mode(epoch) == mode && !mode_excludes(mode) &&
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

/* All members are complete: the next one has the epoch for itself. */
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
 * Become a member; true if the task must wait for that.  Takes an epoch from
 * @fresh where it needs one.  If that was the last thing it waited for, and
 * what it waited for is over by now, it is put on the list @ready.  @entered: when
 * the last one did so.
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

bool tail_is_dead(const struct tail *tail, uint64_t forgiven)
{
	struct epoch *epoch = tail->epoch;

	if (!epoch)
		return true;
	if (!epoch_is_over(epoch))
		return false;
	if (epoch->kind & EPOCH_ADDS)
		sum_combine(&epoch->sum);
	return !(epoch->kind & EPOCH_LEAVES) || tail->serial <= forgiven;
}

/* ---- the table of addresses ---- */

static size_t hash_slot(const struct domain *domain, const void *addr)
{
	uint64_t mixed = (uintptr_t)addr * 0x9e3779b97f4a7c15u;

	return (size_t)(mixed >> 32) & (domain->capacity - 1);
}

static struct entry *find_entry(struct domain *domain, const void *addr)
{
	size_t at = hash_slot(domain, addr);

	while (domain->entries[at].tail.epoch &&
	       domain->entries[at].addr != addr)
		at = (at + 1) & (domain->capacity - 1);
	return &domain->entries[at];
}

/* Into a new table, without what is over. */
static int table_renew(struct worker *w, struct domain *domain, size_t more)
{
	struct domain old = *domain;
	size_t live = 0, capacity = CAPACITY_MIN, i;

	for (i = 0; i < old.capacity; i++) {
		const struct tail *tail = &old.entries[i].tail;

		live += !tail_is_dead(tail, old.forgiven);
	}
	while (capacity < (live + more) * 4)
		capacity *= 2;
	domain->entries = calloc(capacity, sizeof(*domain->entries));
	if (!domain->entries) {
		*domain = old;
		return -ENOMEM;
	}
	domain->capacity = capacity;
	domain->used = 0;
	for (i = 0; i < old.capacity; i++) {
		struct entry *entry = &old.entries[i];

		if (!entry->tail.epoch)
			continue;
		if (tail_is_dead(&entry->tail, old.forgiven)) {
			epoch_free(w, entry->tail.epoch);
			continue;
		}
		*find_entry(domain, entry->addr) = *entry;
		domain->used++;
	}
	free(old.entries);
	return 0;
}

static int reserve_entries(struct worker *w, struct domain *domain, size_t more)
{
	if ((domain->used + more) * 2 <= domain->capacity)
		return 0;
	return table_renew(w, domain, more);
}

/* What a dependence is on. */
static inline const void *dep_addr(const struct ktrt_dep *dep)
{
	const struct ktrt_reduction *reduction = dep->addr;

	return unlikely(dep->mode == KTRT_REDUCTION) ? reduction->data
						     : dep->addr;
}

/* ---- addresses become ranges ---- */

/* An address is its first byte; nothing begins behind the last one. */
static void dep_bounds(const struct ktrt_dep *dep, uintptr_t *start,
		       uintptr_t *end)
{
	*start = (uintptr_t)dep_addr(dep);
	if (!dep->len && *start == UINTPTR_MAX)
		--*start;
	*end = *start + (dep->len ? dep->len : 1);
}

/* Segments for all addresses in use, which have no chains yet. */
static int cut_entries(struct worker *w, const struct domain *domain,
		       struct ranges *ranges)
{
	int error = 0;

	for (size_t i = 0; i < domain->capacity && !error; i++) {
		const struct entry *entry = &domain->entries[i];
		struct ktrt_dep dep = { entry->addr, 0, KTRT_IN };
		uintptr_t start, end;

		dep_bounds(&dep, &start, &end);
		if (!tail_is_dead(&entry->tail, domain->forgiven))
			error = ranges_cut(w, ranges, start, end);
	}
	return error;
}

static void move_entry(struct worker *w, struct entry *entry,
		       struct ranges *ranges)
{
	struct ktrt_dep dep = { entry->addr, 0, KTRT_IN };
	struct tail *tail;
	uintptr_t start, end;
	struct ready none;

	dep_bounds(&dep, &start, &end);
	tail = ranges_at(ranges, start);
	if (tail && !tail->epoch) {
		*tail = entry->tail;
		return;
	}
	/* It was over. */
	ready_init(&none);
	epoch_put(w, entry->tail.epoch, &none);
}

/* Nothing has changed where there is no memory. */
static int begin_ranges(struct worker *w, struct domain *domain)
{
	struct ranges *ranges = ranges_new();

	if (!ranges)
		return -ENOMEM;
	if (cut_entries(w, domain, ranges)) {
		ranges_free(w, ranges);
		return -ENOMEM;
	}
	for (size_t i = 0; i < domain->capacity; i++)
		if (domain->entries[i].tail.epoch)
			move_entry(w, &domain->entries[i], ranges);
	free(domain->entries);
	domain->entries = NULL;
	domain->capacity = domain->used = 0;
	domain->ranges = ranges;
	return 0;
}

static bool names_range(const struct ktrt_dep *deps, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (deps[i].len)
			return true;
	return false;
}

/* ---- entering a task ---- */

static struct domain *domain_of(struct ktrt_task *parent)
{
	if (!parent->domain)
		parent->domain = calloc(1, sizeof(*parent->domain));
	return parent->domain;
}

/* Memory for @nr members, before anything is entered. */
static int members_alloc(struct worker *w, struct ktrt_task *task, size_t nr,
			 struct epoch **fresh)
{
	task->access = task->access_inline;
	if (nr > ACCESS_INLINE) {
		task->access = malloc(nr * sizeof(*task->access));
		if (!task->access)
			return -ENOMEM;
		task->flags |= TASK_ACCESS_ALLOCATED;
	}
	*fresh = NULL;
	while (nr--) {
		struct epoch *epoch = epoch_new(w, KTRT_IN);

		if (!epoch)
			return -ENOMEM;
		epoch->next = *fresh;
		*fresh = epoch;
	}
	return 0;
}

static void fresh_free(struct worker *w, struct epoch *fresh)
{
	struct epoch *next;

	for (; fresh; fresh = next) {
		next = fresh->next;
		epoch_free(w, fresh);
	}
}

/* How many it must wait for by that: 0 or 1. */
static uint32_t enter_access(struct worker *w, struct ktrt_task *task,
			     struct domain *domain, struct tail *tail,
			     struct epoch **fresh, const struct ktrt_dep *dep,
			     struct ready *ready)
{
	uint64_t entered = tail->serial;
	unsigned mode = dep->mode;
	struct access *access;

	/* Named twice; the strictest come first, so nothing is lost. */
	if (tail->epoch && entered == domain->serial)
		return 0;
	access = &task->access[task->nr_access++];
	access->task = task;
	tail->serial = domain->serial;
	/* So that it is known below that the mode is a plain one. */
	if (unlikely(mode > KTRT_INOUT))
		return chain_enter_special(w, domain, tail, entered, fresh,
					   access, dep, ready);
	return chain_enter(w, domain, tail, entered, fresh, access, mode, dep,
			   ready);
}

static struct entry *entry_of(struct domain *domain, const void *addr)
{
	struct entry *entry = find_entry(domain, addr);

	if (!entry->tail.epoch) {
		entry->addr = addr;
		domain->used++;
	}
	return entry;
}

static uint32_t enter_dep(struct worker *w, struct ktrt_task *task,
			  struct domain *domain, const struct ktrt_dep *dep,
			  struct epoch **fresh)
{
	uint32_t waits = 0;
	uintptr_t at, end;
	struct ready none;

	/* The task has one of @pending left: nothing becomes ready by this. */
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

/* Members that the task may need, and -ENOMEM; cuts ranges. */
static long count_members(struct worker *w, struct domain *domain,
			  const struct ktrt_dep *deps, size_t nr)
{
	long members = 0;
	uintptr_t at, end;

	if (!domain->ranges)
		return (long)nr;
	ranges_tidy(w, domain->ranges, domain->forgiven);
	for (size_t i = 0; i < nr; i++) {
		dep_bounds(&deps[i], &at, &end);
		if (ranges_cut(w, domain->ranges, at, end))
			return -ENOMEM;
	}
	for (size_t i = 0; i < nr; i++)
		for (dep_bounds(&deps[i], &at, &end); at < end; members++)
			ranges_next(domain->ranges, &at);
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

/* The strictest modes first. */
enum { RANK_WRITES, RANK_COMMUTES, RANK_REDUCES, RANK_READS, NR_RANKS };

static inline unsigned mode_rank(unsigned mode)
{
	return mode == KTRT_IN		  ? RANK_READS
	       : mode <= KTRT_INOUT	  ? RANK_WRITES
	       : mode == KTRT_COMMUTATIVE ? RANK_COMMUTES
					  : RANK_REDUCES;
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

int deps_add(struct worker *w, struct ktrt_task *task,
	     const struct ktrt_dep *deps, size_t nr, bool *ready)
{
	unsigned ranks;
	uint32_t waits, most;
	struct domain *domain = domain_of(task->parent);
	struct epoch *fresh = NULL;
	long members;

	rank_assert(w == self_worker && task->parent == w->current);
	if (!domain)
		return -ENOMEM;
	if (!domain->ranges && names_range(deps, nr) && begin_ranges(w, domain))
		return -ENOMEM;
	if (!domain->ranges && reserve_entries(w, domain, nr))
		return -ENOMEM;
	if (nr == 1 && !domain->ranges && deps->mode <= KTRT_INOUT)
		return add_one(w, task, domain, deps, ready);
	ranks = ranks_of(deps, nr);
	if (unlikely(ranks & 1u << RANK_REDUCES))
		domain->sums = true;
	members = count_members(w, domain, deps, nr);
	if (members < 0)
		return -ENOMEM;
	if (members_alloc(w, task, (size_t)members, &fresh)) {
		fresh_free(w, fresh);
		return -ENOMEM;
	}
	if (unlikely(ranks & 1u << RANK_COMMUTES))
		task->flags |= TASK_TURNS;
	domain->serial++;
	/* As if it waited for all, and one more until all are entered. */
	most = (uint32_t)members + 1;
	at_poke(&task->pending, most);
	waits = enter_deps(w, task, domain, deps, nr, ranks, &fresh);
	fresh_free(w, fresh);
	*ready = !waits;
	if (waits)
		*ready = at_sub(&task->pending, most - waits) == most - waits;
	if (unlikely(ranks & 1u << RANK_COMMUTES) && *ready)
		*ready = turns_take(task);
	return 0;
}

/* What it was to write is spoilt if it failed, and else good again if nobody
 * else wrote it. */
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

/* Where a task has failed, or it is one that takes turns. */
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

/* Copies of a reduction that nobody reads yet. */
static void settle_tail(struct tail *tail)
{
	if (tail->epoch && tail->epoch->kind & EPOCH_ADDS)
		sum_combine(&tail->epoch->sum);
}

void deps_forgive(struct ktrt_task *parent)
{
	parent->domain->forgiven = parent->domain->serial;
}

void deps_settle(struct ktrt_task *parent)
{
	struct domain *domain = parent->domain;

	rank_assert(self_worker->current == parent);
	deps_forgive(parent);
	if (likely(!domain->sums))
		return;
	domain->sums = false;
	for (size_t i = 0; i < domain->capacity; i++)
		settle_tail(&domain->entries[i].tail);
	if (domain->ranges)
		ranges_each(domain->ranges, settle_tail);
}

void deps_close(struct worker *w, struct ktrt_task *parent)
{
	struct domain *domain = parent->domain;
	struct ready none;

	ready_init(&none);
	for (size_t i = 0; i < domain->capacity; i++)
		if (domain->entries[i].tail.epoch)
			epoch_put(w, domain->entries[i].tail.epoch, &none);
	ranges_free(w, domain->ranges);
	free(domain->entries);
	free(domain);
	parent->domain = NULL;
}
