/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The data that a task's children use: a table of addresses.  Once a child names a range,
 * the ranges of ranges.c take its place.  Then addresses are ranges of one byte, so that
 * both find the same chains.
 *
 * Locking: all is B of dependences.h.
 */
#ifndef RUNTIME_DOMAIN_H
#define RUNTIME_DOMAIN_H

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
	uint64_t forgiven; /* failures up to this serial number were reported */
	bool sums; /* chains may have copies to be combined */
	bool weak; /* children that are complete may still be in chains */
	bool special; /* there are ranges, or the parent has proxies */
	struct ranges *ranges; /* NULL: the table has all; else it is empty */
};

/* The address that a dependence names. */
static inline const void *dep_addr(const struct ktrt_dep *dep)
{
	const struct ktrt_reduction *reduction = dep->addr;

	return unlikely(dep->mode == KTRT_REDUCTION) ? reduction->data
						     : dep->addr;
}

/* The bytes of a dependence.  One without a length is the first byte at its address.  No
 * range goes beyond the last address. */
void dep_bounds(const struct ktrt_dep *dep, uintptr_t *start, uintptr_t *end);

static inline size_t hash_slot(const struct domain *domain, const void *addr)
{
	uint64_t mixed = (uintptr_t)addr * 0x9e3779b97f4a7c15u;

	return (size_t)(mixed >> 32) & (domain->capacity - 1);
}

static inline struct entry *find_entry(struct domain *domain, const void *addr)
{
	size_t at = hash_slot(domain, addr);

	while (domain->entries[at].tail.epoch &&
	       domain->entries[at].addr != addr)
		at = (at + 1) & (domain->capacity - 1);
	return &domain->entries[at];
}

/* The same for a datum that is about to be used. */
static inline struct entry *entry_of(struct domain *domain, const void *addr)
{
	struct entry *entry = find_entry(domain, addr);

	if (!entry->tail.epoch) {
		entry->addr = addr;
		domain->used++;
	}
	return entry;
}

/* Make a new table with room for @more further addresses; 0 or -ENOMEM. */
int domain_renew_table(struct worker *w, struct domain *domain, size_t more);
/* The same, but keep the present table if they fit. */
static inline int domain_reserve(struct worker *w, struct domain *domain,
				 size_t more)
{
	if (likely((domain->used + more) * 2 <= domain->capacity))
		return 0;
	return domain_renew_table(w, domain, more);
}

/* Replace the table by ranges.  0, or -ENOMEM, and then nothing has changed. */
int domain_begin_ranges(struct worker *w, struct domain *domain);

#endif /* RUNTIME_DOMAIN_H */
