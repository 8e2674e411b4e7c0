/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <stdatomic.h>
#include <stddef.h>

#include "calls_history.h"

/* A program has one or two devices. */
#define NR_ENTRIES 4

/* This many trials in a row must agree.  A single one may be wrong: a helper without a CPU
 * looks like a device that admits no second call. */
#define AGREEING 2u
/* Registrations without a trial after that: as many are slow if the trials were wrong. */
#define BELIEVED 15u

static struct history_entry {
	_Atomic(ktask_register_func) func; /* NULL: free */
	_Atomic unsigned vain; /* trials in a row that found no gain */
	_Atomic unsigned left; /* registrations */
} history_entries[NR_ENTRIES];

static struct history_entry *find_entry(ktask_register_func func)
{
	for (struct history_entry *entry = history_entries;
	     entry < history_entries + NR_ENTRIES; entry++)
		if (atomic_load(&entry->func) == func)
			return entry;
	return NULL;
}

static struct history_entry *make_entry(ktask_register_func func)
{
	struct history_entry *entry = find_entry(NULL);

	/* The first one makes room. */
	if (!entry)
		entry = history_entries;
	atomic_store(&entry->left, 0);
	atomic_store(&entry->vain, 0);
	atomic_store(&entry->func, func);
	return entry;
}

void calls_history_note(ktask_register_func func, bool gain)
{
	struct history_entry *entry = find_entry(func);

	if (gain) {
		if (entry)
			atomic_store(&entry->vain, 0);
		return;
	}
	if (!entry)
		entry = make_entry(func);
	if (atomic_fetch_add(&entry->vain, 1) + 1 >= AGREEING)
		atomic_store(&entry->left, BELIEVED);
}

bool calls_history_believes(ktask_register_func func)
{
	struct history_entry *entry = find_entry(func);
	unsigned left = entry ? atomic_load(&entry->left) : 0;

	while (left)
		if (atomic_compare_exchange_weak(&entry->left, &left, left - 1))
			return true;
	return false;
}
