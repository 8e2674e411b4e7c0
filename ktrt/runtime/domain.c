/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Owns the table of addresses that a parent's children use, and replaces it by ranges.  Also
 * does to all chains what a wait or the end of the parent requires.  Does not own chains
 * (dependences.c, epochs.c).
 *
 * Behaves badly with very many data that are used once and for long: the table grows
 * with the number of incomplete tasks.
 *
 * Locking: dependences.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "domain.h"

#define CAPACITY_MIN 64

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

/* Chains that are over are left out of the new table. */
int domain_renew_table(struct worker *w, struct domain *domain, size_t more)
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

/* ---- addresses become ranges ---- */

void dep_bounds(const struct ktrt_dep *dep, uintptr_t *start, uintptr_t *end)
{
	*start = (uintptr_t)dep_addr(dep);
	if (!dep->len && *start == UINTPTR_MAX)
		--*start;
	*end = *start + (dep->len ? dep->len : 1);
}

/* Make segments, without chains, for all addresses in use. */
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

int domain_begin_ranges(struct worker *w, struct domain *domain)
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
	domain->special = true;
	return 0;
}

/* ---- waits, and the end ---- */

/* Combine the copies of a reduction that no later task has needed yet. */
static void settle_tail(struct tail *tail, const struct domain *domain)
{
	if (tail->epoch && tail->epoch->kind & EPOCH_ADDS)
		sum_combine(&tail->epoch->sum);
}

/* Mark a chain whose members are complete before the data is ready.  Not one of which only a
 * gate is a member: no failure of a gate was reported. */
static void forgive_tail(struct tail *tail, const struct domain *domain)
{
	if (tail->epoch && tail->serial <= domain->forgiven &&
	    !epoch_is_over(tail->epoch))
		at_or(&tail->epoch->kind, EPOCH_FORGIVEN);
}

static void each_tail(struct domain *domain, tail_func func)
{
	for (size_t i = 0; i < domain->capacity; i++)
		func(&domain->entries[i].tail, domain);
	if (domain->ranges)
		ranges_each(domain->ranges, func, domain);
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
	if (unlikely(domain->weak && task_has_proxies(parent)))
		each_tail(domain, forgive_tail);
	if (likely(!domain->sums))
		return;
	domain->sums = false;
	each_tail(domain, settle_tail);
}

void deps_close(struct worker *w, struct ktrt_task *parent)
{
	struct domain *domain = parent->domain;
	struct ready none;

	if (unlikely(task_has_proxies(parent)))
		proxies_end(w, parent);
	ready_init(&none);
	for (size_t i = 0; i < domain->capacity; i++)
		if (domain->entries[i].tail.epoch)
			epoch_put(w, domain->entries[i].tail.epoch, &none);
	ranges_free(w, domain->ranges);
	free(domain->entries);
	free(domain);
	parent->domain = NULL;
}
