/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <stdatomic.h>
#include <stddef.h>

#include "calls_history.h"

/* A program has one or two devices. */
#define NR_ENTRIES 4

/* Registrations without a trial behind one: where it was wrong, so many are slow. */
#define BELIEVED 15u

static struct history_entry {
	_Atomic(ktask_register_func) func; /* NULL: free */
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

void calls_history_note(ktask_register_func func)
{
	struct history_entry *entry = find_entry(func);

	if (!entry)
		entry = find_entry(NULL);
	/* The first one makes room. */
	if (!entry)
		entry = history_entries;
	atomic_store(&entry->left, 0);
	atomic_store(&entry->func, func);
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
