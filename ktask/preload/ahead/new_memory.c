/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Decides whether new memory, of which the rest of the shim reports, is watched, and if not
 * why.  The first mapping that is watched starts the watcher.
 *
 * The call may come from an allocator that holds its lock: see grown_areas.h.
 *
 * Locking: there is no lock.  Any thread may write shim_ahead_least_block; the rest is
 * written when the shim is loaded.
 */
#include "preload/ahead/ahead.h"
#include "preload/ahead/grown_areas.h"
#include "preload/ahead/inherited_mappings.h"
#include "preload/shim.h"
#include "util/scoped.h"

size_t shim_ahead_min_bytes = SIZE_MAX;
_Atomic size_t shim_ahead_least_block = SIZE_MAX;
bool shim_ahead_small;

/*
 * Return: why the mapping is not watched; SHIM_NR_WHY: it is.  Available memory is checked
 * first: if it is short nothing would be made ahead, but the other checks, the watcher and
 * helpers would take some.
 */
static enum shim_why find_reason(size_t bytes)
{
	if (shim_main_has_ended())
		return WHY_AHEAD_MAIN;
	if (!shim_ahead_running() && !ahead_has_memory_for(bytes))
		return shim_available_bytes() ? WHY_AHEAD_MEMORY
					      : WHY_AHEAD_PROC;
	if (!ahead_is_allowed())
		return WHY_CONFIG;
	if (ahead_objection() != SHIM_NR_WHY)
		return ahead_objection();
	if (!ahead_is_ordinary())
		return WHY_AHEAD_POLICY;
	if (!shim_ahead_running())
		return ahead_why_not();
	/* The watcher ends because of a limit on threads, or of overcommit. */
	return ahead_is_ending() ? ahead_why_no_threads() : SHIM_NR_WHY;
}

/* Return: false if a mapping of so many bytes is not to be watched, which is noted. */
static bool begin_watching(size_t bytes)
{
	enum shim_why why = find_reason(bytes);

	if (why != SHIM_NR_WHY) {
		shim_decline(why, bytes);
		return false;
	}
	/* A dry run watches as well, to report what could be made. */
	shim_takes(SHIM_AHEAD, bytes);
	return ahead_start_watcher();
}

static void watch_range(uintptr_t start, uintptr_t end, uintptr_t block,
			bool found)
{
	uintptr_t first =
		(start + AHEAD_PAGE_BYTES - 1) & ~(AHEAD_PAGE_BYTES - 1);
	uintptr_t last = end & ~(AHEAD_PAGE_BYTES - 1);

	if (last <= first || !begin_watching(end - start))
		return;
	/* A block lies in what its allocator mapped. */
	if (!(block && large_mappings_overlap(first, last)) &&
	    large_mapping_add(first, last, block, found))
		ahead_wake_watcher();
}

/* ---- shared memory ---- */

void shim_ahead_shared(void *base, size_t len, const void *from)
{
	uintptr_t start = (uintptr_t)base;

	if (!shim_busy() && shim_wants(SHIM_AHEAD, len, from))
		inherited_mappings_add(start, (start + len + AHEAD_PAGE_BYTES -
					       1) & ~(AHEAD_PAGE_BYTES - 1));
}

void shim_ahead_fork(void)
{
	inherited_mappings_fork();
}

static void watch_inherited(uintptr_t start, uintptr_t end,
			    struct shared_waste *waste, bool begins)
{
	if (!begins || !begin_watching(end - start))
		return;
	shared_waste_begin(waste);
	if (!large_mapping_add_shared(start, end, waste))
		shared_waste_last(waste);
}

/* Return: false: there may be no watcher now. */
static bool resume_watcher(void)
{
	return !ahead_is_resting() ||
	       (find_reason(shim_ahead_min_bytes) == SHIM_NR_WHY &&
		ahead_start_watcher());
}

/* In a child that has lived for a while, or rested. */
static void watch_all_inherited(void)
{
	inherited_mappings_each(watch_inherited);
	large_mappings_wake();
	/* First: the watcher may be about to rest. */
	ahead_wake_watcher();
	if (!resume_watcher())
		inherited_mappings_rest(true);
}

/* ---- what an allocator of the program's own has made ---- */

/* Nothing here allocates or waits: the allocator may hold its lock. */
static void watch_allocators_range(uintptr_t start, uintptr_t end)
{
	if (!shim_ahead_running()) {
		grown_areas_note(start, end);
		atomic_store(&shim_ahead_least_block, 0);
	} else if (!ahead_is_ending() && ahead_is_ordinary() &&
		   large_mapping_add(start, end, 0, false)) {
		shim_takes(SHIM_AHEAD, end - start);
		ahead_wake_watcher();
	}
}

static void watch_found_range(uintptr_t start, uintptr_t end)
{
	watch_range(start, end, 0, true);
}

/* Watch noted memory, and memory of which the shim was not told.  No allocator's lock is
 * held. */
static void watch_noted(bool read_list)
{
	uintptr_t start, end;

	if (inherited_mappings_take())
		watch_all_inherited();
	while (grown_areas_take(&start, &end))
		if (!large_mappings_overlap(start, end))
			watch_range(start, end, 0, false);
	if (read_list && !shim_ahead_running())
		grown_areas_find(watch_found_range);
}

static void watch_quietly(uintptr_t start, uintptr_t end, uintptr_t block,
			  const void *from)
{
	keep_errno();

	block_cancellation();
	if (!shim_wants(SHIM_AHEAD, end - start, NULL))
		return;
	shim_set_busy(true);
	if (shim_is_allocator(from))
		watch_allocators_range(start, end);
	else
		watch_range(start, end, block, false);
	shim_set_busy(false);
}

static void watch_noted_quietly(bool read_list)
{
	keep_errno();

	/* First: what follows allocates. */
	atomic_store(&shim_ahead_least_block, shim_ahead_min_bytes);
	block_cancellation();
	if (!shim_wants(SHIM_AHEAD, shim_ahead_min_bytes, NULL))
		return;
	shim_set_busy(true);
	watch_noted(read_list);
	shim_set_busy(false);
	if (inherited_mappings_wait())
		atomic_store(&shim_ahead_least_block, 0);
}

/* Is there something to be done by a call of an allocator? */
static bool is_call_awaited(void)
{
	return atomic_load(&shim_ahead_least_block) < shim_ahead_min_bytes &&
	       (!inherited_mappings_wait() || inherited_mappings_due() ||
		grown_areas_noted());
}

void shim_ahead_block(void *block, size_t len, const void *from)
{
	if (shim_busy())
		return;
	/* The C library and the loader may hold locks of their own. */
	if (is_call_awaited() && !shim_is_system(from))
		watch_noted_quietly(false);
	if (len < shim_ahead_min_bytes)
		return;
	grown_areas_know(block, len);
	watch_quietly((uintptr_t)block, (uintptr_t)block + len,
		      (uintptr_t)block, NULL);
}

void shim_ahead_know(const void *base, size_t len)
{
	if (len >= shim_ahead_min_bytes)
		grown_areas_know(base, len);
}

void shim_ahead_mapping(void *base, size_t len, const void *from)
{
	/* First: the watcher that this may start would find it, too. */
	shim_ahead_know(base, len);
	if (len >= shim_ahead_min_bytes && !shim_busy())
		watch_quietly((uintptr_t)base, (uintptr_t)base + len, 0, from);
}

void shim_ahead_moment(void)
{
	bool had_more;

	if (shim_ahead_min_bytes == SIZE_MAX || shim_ahead_running() ||
	    shim_busy() || !shim_filter_allows())
		return;
	had_more = grown_areas_had_more();
	if (had_more ||
	    atomic_load(&shim_ahead_least_block) < shim_ahead_min_bytes)
		watch_noted_quietly(had_more);
}
