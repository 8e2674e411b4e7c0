/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The table of large mappings that are watched: private ones, and shared ones that the
 * process has inherited.  Any thread adds and stops
 * entries; the watcher serves and frees them.
 *
 *	FREE --claim--> CLAIMED --range set--> WATCHED --stop--> STOPPED --> FREE
 *
 * Any thread may claim an entry and stop it.  Only the watcher frees one, when no job
 * works on the mapping any more.  A thread that makes pages first counts itself and
 * then reads the state.  A thread that stops a mapping first changes the state and then
 * waits for the count to become zero.  So no page of a stopped range is made.  No lock
 * is held and nothing is allocated, because a signal handler may unmap.
 *
 *	A: atomic; of any thread
 *	C: set by whoever claimed the entry, before it is WATCHED; constant until FREE
 *	W: the watcher's; a field that is atomic may be read or reset by other threads
 *	J: written by the watcher while no job works on the mapping; read by helpers
 */
#ifndef PRELOAD_LARGE_MAPPINGS_H
#define PRELOAD_LARGE_MAPPINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ktask/ktask.h>

#include "ahead/poll_schedule.h"
#include "ahead/shared_waste.h"
#include "ahead/touch_steps.h"

#define AHEAD_MAPPINGS 128
#define AHEAD_PAGE_BYTES ((size_t)4096)
#define AHEAD_BLOCK_BYTES (AHEAD_BLOCK_PAGES * AHEAD_PAGE_BYTES)

enum mapping_state {
	MAPPING_FREE,
	MAPPING_CLAIMED,
	MAPPING_WATCHED,
	MAPPING_STOPPED
};

/* The program's own advice on huge pages. */
enum mapping_advice { ADVICE_NONE, ADVICE_HUGE, ADVICE_SMALL };

/* Pages that were counted for the report. */
struct told_pages {
	size_t touched, advised, made;
};

struct large_mapping {
	_Atomic int state; /* A */
	_Atomic uintptr_t start; /* C: whole pages */
	_Atomic uintptr_t end; /* C */
	_Atomic uintptr_t
		block; /* C: that an allocator returned; 0: a mapping */
	bool found; /* C: in the list of mappings: nobody told of it */
	/* C: counts for all processes that share it; NULL: it is private */
	struct shared_waste *waste;
	_Atomic int advice; /* A: enum mapping_advice */
	_Atomic bool advised; /* A: by us: huge pages for a part of it */
	atomic_uint
		nr_making; /* A: threads that make pages, or are about to check */
	atomic_ulong made_pages; /* A */

	/* W */
	bool young; /* see struct shared_waste */
	size_t touched_before; /* when it rested last */
	atomic_bool rests; /* until it is woken */
	bool seen; /* also written by the thread that claims the entry: false */
	struct touch_tracker tracker;
	struct touch_steps steps;
	struct poll_schedule schedule;
	uint64_t since_ns;
	uint64_t helped_ns; /* when a helper had a CPU for a whole window */
	struct ktask_job *_Atomic job;
	struct ktask_result result;
	/* J */
	struct touch_window window;
	bool huge;
	int node; /* -1: any */
	bool unyielding; /* whatever else runs */
	atomic_uint nr_blocks; /* A: that no helper has come to the end of */
	_Atomic bool preempted; /* A: a helper has lost its CPU */
	_Atomic bool turned_huge; /* A: small pages, or they were huge ones */
	uint64_t slow_block_ns; /* CPU time of a slow huge page */
	atomic_uint nr_slow_blocks; /* A */
	/* W again */
	unsigned long made_before; /* the job */
	bool is_left; /* the window, to the program, for which it was advised */
	unsigned nr_windows;
	unsigned long advised_pages; /* for the program to make as huge pages */
	bool short_of_memory;
	struct told_pages told;
};

extern struct large_mapping large_mappings[AHEAD_MAPPINGS];

/* Only the first ones are ever used. */
extern atomic_size_t large_mappings_nr;

static inline size_t large_mappings_used(void)
{
	return atomic_load(&large_mappings_nr);
}

/* Return: the entry, for the watcher to find; NULL: the table is full, or the program objects.
 * The reason is counted for the report. */
struct large_mapping *large_mapping_add(uintptr_t start, uintptr_t end,
					uintptr_t block, bool found);

/* The same, of an inherited mapping. */
struct large_mapping *large_mapping_add_shared(uintptr_t start, uintptr_t end,
					       struct shared_waste *waste);
/* Poll resting ones again. */
void large_mappings_wake(void);
/* By the watcher: is there any, and do all rest?  @idle: it has not heard of anything for so
 * long that it may also end where shared ones were given up, and none is left. */
bool large_mappings_rest(bool idle);

/* Is any of it watched, or was until a moment ago? */
bool large_mappings_overlap(uintptr_t start, uintptr_t end);

/* Whether pages may be made, until large_mapping_leave(). */
bool large_mapping_enter(struct large_mapping *mapping);
void large_mapping_leave(struct large_mapping *mapping);

/* Let no page of any mapping be made from now on. */
void large_mappings_stop_all(void);
/* By the watcher: huge pages are about to be advised for a part of it. */
void large_mapping_note_advice(struct large_mapping *mapping);
/* Let helpers begin no further piece of the mapping; waits for none. */
void large_mapping_give_up(struct large_mapping *mapping);
/* Is the table nearly full?  Then the watcher retires mappings of which the program has
 * touched all, since nothing more is made of them.  Return: whether it is stopped now. */
bool large_mappings_are_many(void);
bool large_mapping_retire(struct large_mapping *mapping);
/* By the watcher, once no job works on the mapping. */
void large_mapping_free(struct large_mapping *mapping);

/* Pages that the program touched in order, of all watched mappings: the watcher's. */
size_t large_mappings_touched(void);

/* Bytes that watched mappings still may touch. */
size_t large_mappings_untouched(void);

/*
 * large_mappings_replaced - a number that changes when a call may replace a mapping
 *
 * Call this before reading the list of mappings, and again after adding those that were
 * found in it.  If both calls return the same number and that is not 0, the found
 * mappings have not been replaced.
 *
 * Return: 0 while such a call is in progress.
 */
unsigned long large_mappings_replaced(void);

/* Give up found mappings that overlap the range. */
void large_mappings_give_up_found(uintptr_t start, uintptr_t end);

/* In the child of a fork, which has no watcher. */
void large_mappings_forget(void);
/* The child does not have the threads that were in a call either. */
void large_mappings_forget_calls(void);

#endif /* PRELOAD_LARGE_MAPPINGS_H */
