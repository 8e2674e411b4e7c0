/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See large_mappings.h. */
#include <sys/mman.h>

#include "preload/ahead/large_mappings.h"
#include "preload/ahead/ahead.h"
#include "preload/ahead/inherited_mappings.h"
#include "preload/ahead/joined_ranges.h"
#include "preload/ahead/page_makers.h"
#include "preload/shim.h"
#include "util/large_static.h"
#include "util/scoped.h"

/* Whoever waits for a piece polls SPINS times without sleeping, then every POLL_NS, and
 * lends its priority to who makes it.  Pieces take some 100 us. */
#define SPINS 2000
#define POLL_NS 50000

struct large_mapping large_mappings[AHEAD_MAPPINGS] LARGE_STATIC;
atomic_size_t large_mappings_nr;
atomic_uint shim_ahead_watched;
_Atomic uintptr_t shim_ahead_lowest = UINTPTR_MAX, shim_ahead_highest;

/* All watched blocks lie between these two addresses, which only move apart. */
static void cover_block(uintptr_t block)
{
	uintptr_t lowest = atomic_load(&shim_ahead_lowest);
	uintptr_t highest = atomic_load(&shim_ahead_highest);

	while (block < lowest && !atomic_compare_exchange_weak(
					 &shim_ahead_lowest, &lowest, block))
		;
	while (block > highest && !atomic_compare_exchange_weak(
					  &shim_ahead_highest, &highest, block))
		;
}

/* Calls in progress that may map where memory was unmapped without the shim; A.  If a
 * child of vfork() is killed in such a call, it stays counted, and no page of found
 * mappings is made any more. */
static atomic_uint nr_replacing;
/* 1 and the number of such calls that have begun; A. */
static atomic_ulong nr_replaced = 1;
/* Whether inherited mappings were watched; A. */
static atomic_bool had_shared;
/* Found mappings in use.  The shim may not be told when they are unmapped; A. */
static atomic_uint nr_found;

/* Entries behind these were never used. */
static void cover_entry(size_t index)
{
	size_t nr = atomic_load(&large_mappings_nr);

	while (nr <= index && !atomic_compare_exchange_weak(&large_mappings_nr,
							    &nr, index + 1))
		;
}

static struct large_mapping *add_entry(uintptr_t start, uintptr_t end,
				       uintptr_t block, bool found,
				       struct shared_waste *waste)
{
	for (size_t i = 0; i < AHEAD_MAPPINGS; i++) {
		struct large_mapping *mapping = &large_mappings[i];
		int state = MAPPING_FREE;

		cover_entry(i);
		if (!atomic_compare_exchange_strong(&mapping->state, &state,
						    MAPPING_CLAIMED))
			continue;
		mapping->seen = false;
		mapping->start = start;
		mapping->end = end;
		mapping->block = block;
		mapping->found = found;
		mapping->waste = waste;
		mapping->rests = false;
		mapping->advice = ADVICE_NONE;
		mapping->advised = false;
		mapping->made_pages = 0;
		if (block)
			cover_block(block);
		atomic_fetch_add(&shim_ahead_watched, 1);
		atomic_fetch_add(&nr_found, found);
		atomic_store(&mapping->state, MAPPING_WATCHED);
		return mapping;
	}
	return NULL;
}

static struct large_mapping *add_mapping(uintptr_t start, uintptr_t end,
					 uintptr_t block, bool found,
					 struct shared_waste *waste)
{
	enum shim_why why = ahead_objection();
	struct large_mapping *mapping = NULL;

	if (why == SHIM_NR_WHY)
		mapping = add_entry(start, end, block, found, waste);
	if (!mapping)
		shim_decline(why == SHIM_NR_WHY ? WHY_AHEAD_TABLE : why,
			     end - start);
	else if (ahead_objection() != SHIM_NR_WHY)
		large_mapping_give_up(mapping);
	return mapping;
}

struct large_mapping *large_mapping_add(uintptr_t start, uintptr_t end,
					uintptr_t block, bool found)
{
	return add_mapping(start, end, block, found, NULL);
}

struct large_mapping *large_mapping_add_shared(uintptr_t start, uintptr_t end,
					       struct shared_waste *waste)
{
	atomic_store(&had_shared, true);
	return add_mapping(start, end, 0, false, waste);
}

void large_mappings_wake(void)
{
	for (size_t i = 0; i < large_mappings_used(); i++)
		atomic_store(&large_mappings[i].rests, false);
}

bool large_mappings_rest(bool idle)
{
	bool some = idle && atomic_load(&had_shared);

	for (size_t i = 0; i < large_mappings_used(); i++) {
		const struct large_mapping *mapping = &large_mappings[i];

		if (atomic_load(&mapping->state) == MAPPING_FREE)
			continue;
		if (atomic_load(&mapping->state) != MAPPING_WATCHED ||
		    !mapping->seen || !atomic_load(&mapping->rests))
			return false;
		some = true;
	}
	return some;
}

void large_mapping_leave(struct large_mapping *mapping)
{
	atomic_fetch_sub(&mapping->nr_making, 1);
	page_makers_leave();
}

/* Join first: a thread that waits for makers must find each of them to raise it. */
bool large_mapping_enter(struct large_mapping *mapping)
{
	page_makers_join();
	atomic_fetch_add(&mapping->nr_making, 1);
	if (atomic_load(&mapping->state) == MAPPING_WATCHED &&
	    !(mapping->found && atomic_load(&nr_replacing)) &&
	    !(mapping->waste && atomic_load(&mapping->waste->given_back)))
		return true;
	large_mapping_leave(mapping);
	return false;
}

void large_mapping_give_up(struct large_mapping *mapping)
{
	int watched = MAPPING_WATCHED;

	atomic_compare_exchange_strong(&mapping->state, &watched,
				       MAPPING_STOPPED);
}

void large_mapping_free(struct large_mapping *mapping)
{
	bool found = mapping->found;

	mapping->seen = false;
	atomic_store(&mapping->state, MAPPING_FREE);
	atomic_fetch_sub(&nr_found, found);
	atomic_fetch_sub(&shim_ahead_watched, 1);
}

static bool mapping_overlaps(const struct large_mapping *mapping,
			     uintptr_t start, uintptr_t end)
{
	return mapping->start < end && start < mapping->end;
}

static void wait_for_makers(struct large_mapping *mapping)
{
	for (int i = 0; i < SPINS && atomic_load(&mapping->nr_making); i++)
		;
	while (atomic_load(&mapping->nr_making)) {
		page_makers_raise();
		real_sleep(POLL_NS);
	}
}

/*
 * Parts of a mapping with different advice are several mappings to the kernel, and
 * mremap() accepts only one.  Advice against huge pages joins them again.  It is used only
 * if huge pages come on advice, so apart from MADV_COLLAPSE it changes nothing else.  If
 * the program has advised all of the mapping itself, no part differs.
 */
static void join_parts(struct large_mapping *mapping)
{
	void *start = (void *)mapping->start;
	size_t len = mapping->end - mapping->start;

	if (!atomic_exchange(&mapping->advised, false) ||
	    atomic_load(&mapping->advice) != ADVICE_NONE)
		return;
	/* The C library will unmap or move a block without the shim. */
	if (!real_madvise(start, len, MADV_NOHUGEPAGE) && !mapping->block)
		joined_ranges_add(mapping->start, mapping->end);
}

/* Whether huge pages were ever advised here, or in the process that forked this one; A. */
static atomic_bool parts_exist;

void large_mapping_note_advice(struct large_mapping *mapping)
{
	atomic_store(&mapping->advised, true);
	atomic_store(&parts_exist, true);
}

/* The last page of [addr, addr + len) may be used in part.  Too long a range ends with the
 * address space. */
static uintptr_t end_of(const void *addr, size_t len)
{
	if (len > UINTPTR_MAX - AHEAD_PAGE_BYTES - (uintptr_t)addr)
		return UINTPTR_MAX / AHEAD_PAGE_BYTES * AHEAD_PAGE_BYTES;
	return ((uintptr_t)addr + len + AHEAD_PAGE_BYTES - 1) /
	       AHEAD_PAGE_BYTES * AHEAD_PAGE_BYTES;
}

/* The table may have lacked a part that the program replaced. */
bool shim_ahead_rejoin(void *addr, size_t len)
{
	keep_errno();

	if (!atomic_load(&parts_exist) || !len ||
	    real_madvise(addr, len, MADV_NOHUGEPAGE))
		return false;
	joined_ranges_add((uintptr_t)addr, end_of(addr, len));
	return true;
}

/* What was here before is gone.  No page of private memory is present yet, so the kernel
 * joins it with what is beside it. */
void shim_ahead_mapped(void *base, size_t len, bool join)
{
	uintptr_t start = (uintptr_t)base, end = end_of(base, len);
	keep_errno();

	joined_ranges_drop(start, end);
	if (join && joined_ranges_touch(start, end) &&
	    !real_madvise(base, len, MADV_NOHUGEPAGE))
		joined_ranges_add(start, end);
}

/* The kernel collapses nothing in a mapping that could not have a huge page, so what is
 * lifted begins and ends more than one away from the range, where it can. */
bool shim_ahead_lift(void *addr, size_t len, bool lift)
{
	uintptr_t end = end_of(addr, len), at = (uintptr_t)addr, to;
	bool found = false;
	keep_errno();

	if (!atomic_load(&parts_exist) || !shim_filter_allows())
		return false;
	at -= at < 2 * AHEAD_BLOCK_BYTES ? at : 2 * AHEAD_BLOCK_BYTES;
	end = end_of((void *)end, 2 * AHEAD_BLOCK_BYTES);
	for (; joined_ranges_next(&at, end, &to); at = to) {
		int advice = lift ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;

		/* The kernel goes on behind a hole, and says ENOMEM. */
		found |= !real_madvise((void *)at, to - at, advice) ||
			 errno == ENOMEM;
	}
	return found;
}

bool shim_ahead_adjoins(const void *addr, size_t len)
{
	return joined_ranges_touch((uintptr_t)addr, end_of(addr, len));
}

void shim_ahead_unmapped(const void *addr, size_t len)
{
	joined_ranges_drop((uintptr_t)addr, end_of(addr, len));
}

void shim_ahead_moved(const void *old, size_t old_len, const void *to,
		      size_t len, bool stays)
{
	uintptr_t start = (uintptr_t)old, moved = (uintptr_t)to;
	uintptr_t end = end_of(old, old_len);
	/* Not if it only adjoins a range. */
	bool was_joined = old_len && joined_ranges_touch(start + 1, end - 1);

	if (was_joined && !stays)
		joined_ranges_drop(start, end);
	if (moved != start)
		joined_ranges_drop(moved, end_of(to, len));
	if (was_joined)
		joined_ranges_add(moved, end_of(to, len));
}

/* Also waits if another thread, or the watcher, has stopped the mapping before.  Return:
 * whether it is private and was watched until now. */
static bool stop_one(struct large_mapping *mapping, bool join)
{
	int state = MAPPING_WATCHED;
	bool first = atomic_compare_exchange_strong(&mapping->state, &state,
						    MAPPING_STOPPED);

	wait_for_makers(mapping);
	if (join)
		join_parts(mapping);
	return first && !mapping->waste;
}

static bool is_in_use(const struct large_mapping *mapping)
{
	int state = atomic_load(&mapping->state);

	return state == MAPPING_WATCHED || state == MAPPING_STOPPED;
}

bool large_mappings_are_many(void)
{
	return atomic_load(&shim_ahead_watched) > AHEAD_MAPPINGS / 4 * 3;
}

bool large_mapping_retire(struct large_mapping *mapping)
{
	if (!large_mapping_enter(mapping))
		return false;
	/* The program may discard what was advised, and touch it here and there. */
	join_parts(mapping);
	large_mapping_leave(mapping);
	large_mapping_give_up(mapping);
	return true;
}

bool large_mappings_overlap(uintptr_t start, uintptr_t end)
{
	for (size_t i = 0; i < large_mappings_used(); i++)
		if (is_in_use(&large_mappings[i]) &&
		    mapping_overlaps(&large_mappings[i], start, end))
			return true;
	return false;
}

/* If only a part goes, the rest may get a neighbour again. */
static bool leaves_rest(const struct large_mapping *mapping, uintptr_t start,
			uintptr_t end)
{
	return mapping->start < start || end < mapping->end;
}

static bool stop_within(uintptr_t start, uintptr_t end, bool join)
{
	bool stopped = false;

	for (size_t i = 0; i < large_mappings_used(); i++) {
		struct large_mapping *mapping = &large_mappings[i];

		/* Entries belong to the process that made them. */
		if (is_in_use(mapping) &&
		    mapping_overlaps(mapping, start, end) && shim_is_ours())
			stopped |= stop_one(
				mapping,
				join || leaves_rest(mapping, start, end));
	}
	return stopped;
}

bool shim_ahead_stop(const void *addr, size_t len, bool join)
{
	uintptr_t start = (uintptr_t)addr, end = start + len;
	keep_errno();

	if (end < start)
		end = UINTPTR_MAX;
	if (shim_memory_is_watched())
		shim_made_drop(addr, len);
	if (inherited_mappings_nr())
		inherited_mappings_drop(start, end);
	return stop_within(start, end, join);
}

void shim_ahead_remove(const void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr, end = start + len;

	if (inherited_mappings_nr())
		inherited_mappings_give_back(start,
					     end < start ? UINTPTR_MAX : end);
}

void shim_ahead_not_inherited(const void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr, end = start + len;

	if (inherited_mappings_nr())
		inherited_mappings_drop(start, end < start ? UINTPTR_MAX : end);
}

void large_mappings_stop_all(void)
{
	keep_errno();

	stop_within(0, UINTPTR_MAX, true);
}

/*
 * A thread that makes pages first counts itself and then reads nr_replacing.  The caller
 * first increments nr_replacing and then waits for that count.  So until
 * shim_ahead_replaced() no page of a found mapping is made: it may have been unmapped by
 * the C library itself or by a system call without it.
 */
bool shim_ahead_replaces(void)
{
	keep_errno();

	if (shim_ahead_min_bytes == SIZE_MAX)
		return false;
	atomic_fetch_add(&nr_replacing, 1);
	atomic_fetch_add(&nr_replaced, 1);
	if (!atomic_load(&nr_found) || !shim_is_ours())
		return true;
	for (size_t i = 0; i < large_mappings_used(); i++)
		if (large_mappings[i].found && is_in_use(&large_mappings[i]))
			wait_for_makers(&large_mappings[i]);
	return true;
}

unsigned long large_mappings_replaced(void)
{
	unsigned long nr = atomic_load(&nr_replaced);

	return atomic_load(&nr_replacing) ? 0 : nr;
}

void large_mappings_give_up_found(uintptr_t start, uintptr_t end)
{
	for (size_t i = 0; i < large_mappings_used(); i++) {
		struct large_mapping *mapping = &large_mappings[i];

		if (mapping->found && is_in_use(mapping) &&
		    mapping_overlaps(mapping, start, end))
			large_mapping_give_up(mapping);
	}
}

void shim_ahead_replaced(const void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr, end = start + len;

	if (end < start)
		end = UINTPTR_MAX;
	if (len && atomic_load(&nr_found) && shim_is_ours())
		large_mappings_give_up_found(start, end);
	atomic_fetch_sub(&nr_replacing, 1);
}

void shim_ahead_stop_block(const void *block, bool join)
{
	keep_errno();

	for (size_t i = 0; i < large_mappings_used() && shim_ahead_watches();
	     i++) {
		struct large_mapping *mapping = &large_mappings[i];

		if (is_in_use(mapping) && mapping->block == (uintptr_t)block &&
		    shim_is_ours())
			stop_one(mapping, join);
	}
}

/* But for less than a block at each end: some leave out a page, or what fills no block. */
static bool is_covered(const struct large_mapping *mapping, uintptr_t start,
		       uintptr_t end)
{
	return start < mapping->start + AHEAD_BLOCK_BYTES &&
	       end > mapping->end - AHEAD_BLOCK_BYTES;
}

/*
 * If only a part is advised, what one touch makes differs within the mapping, and nobody
 * could tell how far the program has come: so the mapping is given up.
 *
 * A thread that advises for a window first counts itself and then reads what the program
 * has advised.  So after the wait no advice of the shim's comes after the program's.
 */
static void note_advice(struct large_mapping *mapping, uintptr_t start,
			uintptr_t end, int advice)
{
	if (is_covered(mapping, start, end)) {
		atomic_store(&mapping->advice, advice);
		wait_for_makers(mapping);
	} else if (atomic_load(&mapping->advice) != advice) {
		stop_one(mapping, true);
	}
}

void shim_ahead_advised(const void *addr, size_t len, bool huge)
{
	uintptr_t start = (uintptr_t)addr, end = end_of(addr, len);
	keep_errno();

	/* The kernel refuses that. */
	if (start % AHEAD_PAGE_BYTES || start >= end)
		return;
	for (size_t i = 0; i < large_mappings_used() && shim_ahead_watches();
	     i++) {
		struct large_mapping *mapping = &large_mappings[i];

		if (is_in_use(mapping) &&
		    mapping_overlaps(mapping, start, end) && shim_is_ours())
			note_advice(mapping, start, end,
				    huge ? ADVICE_HUGE : ADVICE_SMALL);
	}
	/* This is the program's own now. */
	joined_ranges_cut(start, end);
}

size_t large_mappings_touched(void)
{
	size_t pages = 0;

	for (size_t i = 0; i < large_mappings_used(); i++)
		if (large_mappings[i].seen)
			pages += large_mappings[i].tracker.touched;
	return pages;
}

size_t large_mappings_untouched(void)
{
	size_t bytes = 0;

	for (size_t i = 0; i < large_mappings_used(); i++) {
		const struct large_mapping *mapping = &large_mappings[i];
		size_t pages;

		if (atomic_load(&mapping->state) != MAPPING_WATCHED)
			continue;
		pages = (mapping->end - mapping->start) / AHEAD_PAGE_BYTES;
		if (mapping->seen && mapping->tracker.touched < pages)
			pages -= mapping->tracker.touched;
		else if (mapping->seen)
			pages = 0;
		bytes += pages * AHEAD_PAGE_BYTES;
	}
	return bytes;
}

void large_mappings_forget(void)
{
	for (size_t i = 0; i < large_mappings_used(); i++) {
		struct ktask_job *job =
			atomic_exchange(&large_mappings[i].job, NULL);

		if (job)
			ktask_wait(job);
		atomic_store(&large_mappings[i].nr_making, 0);
		atomic_store(&large_mappings[i].state, MAPPING_FREE);
	}
	page_makers_forget();
	atomic_store(&large_mappings_nr, 0);
	atomic_store(&shim_ahead_watched, 0);
	atomic_store(&nr_found, 0);
}

void large_mappings_forget_calls(void)
{
	atomic_store(&nr_replacing, 0);
}
