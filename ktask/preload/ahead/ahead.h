/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Readahead for anonymous memory: what a program touches in order is made present
 * by helpers before it gets there.
 *
 *	ahead/              how far ahead, where, and when: the policy
 *	large_mappings.c    which large private mappings there are
 *	page_makers.c       who makes pages, to be raised if somebody waits for that
 *	allocation_calls.c  malloc and its kin, which make most of them
 *	grown_areas.c       those that nobody tells of in time
 *	ahead_page_size.c   whether huge pages are advised for what lies ahead
 *	next_window.c       who makes the next window of a mapping
 *	make_ahead.c        a job of the library makes a window
 *	new_memory.c        whether what the shim is told of is watched
 *	ahead_watcher.c     the thread that polls, decides and begins the jobs
 *	watcher_conditions.c  where there may be such a thread
 *
 * What the rest of the shim sees is in preload/shim.h: shim_ahead_*().
 *
 * The watcher asks mincore(2) which pages are present, and /proc/self/pagemap which of
 * those that it waits for were written.  A file that it opens would take the lowest free
 * descriptor, which the program may just have freed for a file of its own.  So the
 * watcher and the helpers that it makes have their own descriptor table.
 */
#ifndef PRELOAD_AHEAD_H
#define PRELOAD_AHEAD_H

#include "ahead/page_cost.h"
#include "preload/ahead/large_mappings.h"
#include "preload/shim.h"

/* ahead_page_size.c: pages that a touch of the mapping makes now */
size_t ahead_unit_pages(const struct large_mapping *mapping);
/* Whether huge pages are to be advised for windows of this mapping. */
bool ahead_wants_huge(const struct large_mapping *mapping, uint64_t now_ns);
/* Advise them for a window.  Return: false if the kernel refuses. */
bool ahead_advise_huge(struct large_mapping *mapping,
		       const struct touch_window *window);
void ahead_page_size_init(void);
/* CPU time from which on a huge page is a slow one, for helpers. */
uint64_t ahead_slow_block_ns(void);
/* A job of this mapping has made so many pages. */
void ahead_note_cost(const struct large_mapping *mapping, size_t nr_pages);
/* See page_costs_note_touches(). */
bool ahead_note_touches(const struct touch_effort *then,
			const struct touch_effort *now);

/* watcher_conditions.c: threads that count against a limit on processes take nothing
 * from the program */
bool ahead_may_have_threads(void);
/* May the calling thread's mappings be watched, and in this process? */
bool ahead_is_ordinary(void);
/* Return: SHIM_NR_WHY, or why not. */
enum shim_why ahead_why_not(void);
/* The administrator allows it (ktask.conf). */
bool ahead_is_allowed(void);

/* ahead_watcher.c: by a helper that has come to the end of a window, or who has a new
 * mapping for it */
void ahead_wake_watcher(void);
/* Return: whether there is a watcher. */
bool ahead_start_watcher(void);
/* It watches nothing new. */
bool ahead_is_ending(void);

/* next_window.c: decide it and begin it; false: the process may have no threads of
 * ours any more */
bool ahead_begin_window(struct large_mapping *mapping, uint64_t now_ns);
/* The job of the last window has ended. */
void ahead_note_result(struct large_mapping *mapping);
/* What is known of the program's own touches does not go on: a mapping is gone. */
void ahead_restart_effort(void);
/* In the child of a fork, whose CPU time begins with 0. */
void ahead_forget_effort(void);

/* make_ahead.c: is there memory for what is watched?  In mapping->short_of_memory. */
bool ahead_has_memory(struct large_mapping *mapping);
/* Would there be, for a first mapping?  By any thread. */
bool ahead_has_memory_for(size_t bytes);
/* begin to make mapping->window; false: it cannot be now */
bool ahead_make(struct large_mapping *mapping);
/* Is the job done?  @cancel: end it. */
bool ahead_made(struct large_mapping *mapping, bool cancel);

#endif /* PRELOAD_AHEAD_H */
