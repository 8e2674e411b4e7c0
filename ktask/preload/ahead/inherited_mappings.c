/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See inherited_mappings.h. */
#include <sys/mman.h>

#include "preload/ahead/ahead.h"
#include "preload/ahead/inherited_mappings.h"
#include "preload/shim.h"
#include "util/clock.h"
#include "util/scoped.h"

#define NR_MAPPINGS 8

/* A child begins to watch after START_NS, and twice that for each of up to START_DOUBLED
 * children that did so in vain.  Before it goes on it rests REST_LEAST_NS, and twice that
 * for each time in vain, up to REST_MOST_NS. */
#define START_NS 5000000u
#define START_DOUBLED 8
#define REST_LEAST_NS 250000000u
#define REST_MOST_NS 16000000000u
/* The clock is read in one of so many calls of an allocator: 25 ns beside 20. */
#define CALLS_OF_CHECK 8

enum { FREE, CLAIMED, USED };

static struct inherited_mapping {
	_Atomic int state;
	_Atomic uintptr_t start, end;
	struct shared_waste
		*_Atomic waste; /* shared with all that inherit it */
	atomic_bool inherited; /* by this process */
	atomic_bool begun; /* to watch it: the counts stay mapped */
	/* Threads that use the counts, or are about to check whether they may.  Each counts
	 * itself first and then reads the state.  Who unmaps the counts, or takes a free entry,
	 * changes the state first and then reads this. */
	atomic_uint nr_users;
} inherited_table[NR_MAPPINGS];
static atomic_uint nr_mappings;
static _Atomic uint64_t due_ns; /* 0: nothing is waited for */
static atomic_bool is_first_wait; /* it waits for the first time */
static _Atomic uint64_t rest_ns;
static atomic_uint nr_calls;

unsigned inherited_mappings_nr(void)
{
	return atomic_load(&nr_mappings);
}

static void leave_mapping(struct inherited_mapping *mapping)
{
	atomic_fetch_sub(&mapping->nr_users, 1);
}

/* Return: whether its counts, if it has some, stay mapped until leave_mapping(). */
static bool enter_mapping(struct inherited_mapping *mapping)
{
	atomic_fetch_add(&mapping->nr_users, 1);
	if (atomic_load(&mapping->state) == USED)
		return true;
	leave_mapping(mapping);
	return false;
}

static bool claim_mapping(struct inherited_mapping *mapping)
{
	int state = FREE;

	if (!atomic_compare_exchange_strong(&mapping->state, &state, CLAIMED))
		return false;
	if (!atomic_load(&mapping->nr_users))
		return true;
	atomic_store(&mapping->state, FREE);
	return false;
}

void inherited_mappings_add(uintptr_t start, uintptr_t end)
{
	for (size_t i = 0; i < NR_MAPPINGS; i++) {
		if (!claim_mapping(&inherited_table[i]))
			continue;
		inherited_table[i].start = start;
		inherited_table[i].end = end;
		inherited_table[i].waste = NULL;
		inherited_table[i].inherited = inherited_table[i].begun = false;
		atomic_fetch_add(&nr_mappings, 1);
		atomic_fetch_add(&shim_ahead_watched, 1);
		atomic_store(&inherited_table[i].state, USED);
		return;
	}
}

static bool is_within(const struct inherited_mapping *mapping, uintptr_t start,
		      uintptr_t end)
{
	return atomic_load(&mapping->state) == USED && mapping->start < end &&
	       start < mapping->end;
}

/* The first block may begin before the mapping. */
static size_t count_blocks(const struct inherited_mapping *mapping)
{
	return (mapping->end + AHEAD_BLOCK_BYTES - 1) / AHEAD_BLOCK_BYTES -
	       mapping->start / AHEAD_BLOCK_BYTES;
}

/* Counts that a watcher has, or another thread, stay mapped: a page or two. */
static void drop_mapping(struct inherited_mapping *mapping)
{
	int used = USED;

	if (!atomic_compare_exchange_strong(&mapping->state, &used, CLAIMED))
		return;
	if (mapping->waste && !mapping->begun &&
	    !atomic_load(&mapping->nr_users))
		real_munmap(mapping->waste,
			    shared_waste_bytes(count_blocks(mapping)));
	atomic_fetch_sub(&nr_mappings, 1);
	atomic_fetch_sub(&shim_ahead_watched, 1);
	atomic_store(&mapping->state, FREE);
}

void inherited_mappings_drop(uintptr_t start, uintptr_t end)
{
	for (size_t i = 0; i < NR_MAPPINGS; i++)
		if (is_within(&inherited_table[i], start, end))
			drop_mapping(&inherited_table[i]);
}

void inherited_mappings_give_back(uintptr_t start, uintptr_t end)
{
	for (size_t i = 0; i < NR_MAPPINGS; i++) {
		struct inherited_mapping *mapping = &inherited_table[i];

		if (!enter_mapping(mapping))
			continue;
		if (is_within(mapping, start, end) && mapping->waste)
			atomic_store(&mapping->waste->given_back, true);
		leave_mapping(mapping);
	}
}

/* ---- fork ---- */

static bool map_waste(struct inherited_mapping *mapping)
{
	size_t nr = count_blocks(mapping);
	struct shared_waste *waste, *none = NULL;

	if (!ahead_is_unlimited())
		return false;
	waste = real_mmap(NULL, shared_waste_bytes(nr), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (waste == MAP_FAILED)
		return false;
	waste->nr_blocks = nr;
	/* Another thread may fork as well. */
	if (!atomic_compare_exchange_strong(&mapping->waste, &none, waste))
		real_munmap(waste, shared_waste_bytes(nr));
	return true;
}

void inherited_mappings_fork(void)
{
	keep_errno();

	if (!inherited_mappings_nr() || !shim_filter_allows())
		return;
	for (size_t i = 0; i < NR_MAPPINGS; i++) {
		struct inherited_mapping *mapping = &inherited_table[i];

		if (!enter_mapping(mapping))
			continue;
		if (!mapping->waste && !map_waste(mapping))
			drop_mapping(mapping);
		leave_mapping(mapping);
	}
}

/* Other threads of the parent may have been adding or dropping. */
static void forget_claimed(struct inherited_mapping *mapping)
{
	if (atomic_load(&mapping->state) != USED || !mapping->waste)
		atomic_store(&mapping->state, FREE);
}

static void begin_waiting(uint64_t ns)
{
	atomic_store(&due_ns, clock_ns(CLOCK_MONOTONIC) + ns);
	atomic_store(&shim_ahead_least_block, 0);
}

/* shim_ahead_watched has none of these: large_mappings_forget(). */
void inherited_mappings_forked(void)
{
	unsigned nr = 0;

	atomic_store(&due_ns, 0);
	atomic_store(&rest_ns, REST_LEAST_NS);
	if (!inherited_mappings_nr())
		return;
	for (size_t i = 0; i < NR_MAPPINGS; i++) {
		inherited_table[i].nr_users = 0;
		forget_claimed(&inherited_table[i]);
		if (atomic_load(&inherited_table[i].state) == FREE)
			continue;
		nr++;
		inherited_table[i].inherited = true;
		inherited_table[i].begun = false;
	}
	atomic_store(&nr_mappings, nr);
	atomic_fetch_add(&shim_ahead_watched, nr);
	if (!nr || !shim_filter_allows())
		return;
	atomic_store(&is_first_wait, true);
	begin_waiting(START_NS);
}

/* ---- waiting ---- */

static unsigned read_young(struct inherited_mapping *mapping)
{
	unsigned nr = 0;

	if (!enter_mapping(mapping))
		return 0;
	if (mapping->inherited && !mapping->begun)
		nr = atomic_load(&mapping->waste->nr_young);
	leave_mapping(mapping);
	return nr;
}

/* The counts are read late: that is a page fault, which a child that ends at once saves. */
static unsigned count_young(void)
{
	unsigned nr = 0;

	for (size_t i = 0; i < NR_MAPPINGS; i++)
		nr += read_young(&inherited_table[i]);
	return nr < START_DOUBLED ? nr : START_DOUBLED;
}

/* Return: whether the time has come, *due. */
static bool has_waited(uint64_t *due)
{
	*due = atomic_load_explicit(&due_ns, memory_order_relaxed);
	if (!*due || clock_ns(CLOCK_MONOTONIC) < *due)
		return false;
	if (!atomic_exchange(&is_first_wait, false))
		return true;
	atomic_store(&due_ns,
		     *due + ((uint64_t)START_NS << count_young()) - START_NS);
	*due = atomic_load(&due_ns);
	return clock_ns(CLOCK_MONOTONIC) >= *due;
}

bool inherited_mappings_wait(void)
{
	return atomic_load_explicit(&due_ns, memory_order_relaxed);
}

bool inherited_mappings_due(void)
{
	unsigned nr = atomic_load_explicit(&nr_calls, memory_order_relaxed);
	uint64_t due;

	/* If two threads store at once, one call is not counted. */
	atomic_store_explicit(&nr_calls, nr + 1, memory_order_relaxed);
	/* Behind a filter even reading the time may kill. */
	return !(nr % CALLS_OF_CHECK) && shim_filter_allows() &&
	       has_waited(&due);
}

bool inherited_mappings_take(void)
{
	uint64_t due;

	return has_waited(&due) &&
	       atomic_compare_exchange_strong(&due_ns, &due, 0);
}

void inherited_mappings_rest(bool in_vain)
{
	uint64_t ns = in_vain ? atomic_load(&rest_ns) : REST_LEAST_NS;

	begin_waiting(ns);
	atomic_store(&rest_ns, ns < REST_MOST_NS ? 2 * ns : ns);
}

void inherited_mappings_each(void (*watch)(uintptr_t start, uintptr_t end,
					   struct shared_waste *waste,
					   bool begins))
{
	for (size_t i = 0; i < NR_MAPPINGS; i++) {
		struct inherited_mapping *mapping = &inherited_table[i];

		if (!enter_mapping(mapping))
			continue;
		if (mapping->inherited)
			watch(mapping->start, mapping->end, mapping->waste,
			      !atomic_exchange(&mapping->begun, true));
		leave_mapping(mapping);
	}
}
