/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Readahead for anonymous memory: where a program touches memory in order, helpers make
 * the pages ahead of it.
 *
 *	ahead/              how far ahead, where, and when: the policy
 *	large_mappings.c    which large mappings are watched
 *	inherited_mappings.c  large shared mappings, of which children watch
 *	page_makers.c       which helpers make pages, to raise them if a thread waits
 *	allocation_calls.c  malloc and its kin, which make most of these mappings
 *	grown_areas.c       mappings of which the shim is not told in time
 *	ahead_page_size.c   whether huge pages are advised for what lies ahead
 *	next_window.c       who makes the next window of a mapping
 *	make_ahead.c        a job of the library makes a window
 *	new_memory.c        whether new memory is watched
 *	ahead_watcher.c     the thread that polls, decides and begins the jobs
 *	present_pages.c     which pages are present
 *	watch_shared.c      what is different where other processes share a mapping
 *	watcher_conditions.c  whether there may be such a thread
 *	objections.c        what the program said against it for all memory
 *
 * The rest of the shim sees only shim_ahead_*() of preload/shim.h.
 *
 * The watcher asks mincore(2) which pages are present, and /proc/self/pagemap whether the
 * program has written the pages of a mark.  Of shared memory mincore() tells what any
 * process has touched, so there the watcher asks /proc/self/pagemap for all.  A file that
 * the watcher opens would take the lowest free descriptor, which the program may just have
 * freed for a file of its own.  So the watcher and the helpers that it makes have their own
 * descriptor table.
 */
#ifndef PRELOAD_AHEAD_H
#define PRELOAD_AHEAD_H

#include "ahead/page_cost.h"
#include "preload/ahead/large_mappings.h"
#include "preload/shim.h"

/* ahead_page_size.c: pages that a touch of the mapping makes now */
size_t ahead_unit_pages(const struct large_mapping *mapping);
/* May huge pages have been advised for it that the shim was not told of? */
bool ahead_may_be_huge_unseen(const struct large_mapping *mapping);
/* Whether huge pages are to be advised for windows of this mapping. */
bool ahead_wants_huge(const struct large_mapping *mapping, uint64_t now_ns);
/* Does a touch make one page of 4 KiB in memory that is shared? */
bool ahead_shares_small(void);
/* Advise them for a window.  Return: false if the kernel refuses. */
bool ahead_advise_huge(struct large_mapping *mapping,
		       const struct touch_window *window);
void ahead_page_size_init(void);
/* CPU time above which a huge page that a helper makes counts as slow. */
uint64_t ahead_slow_block_ns(void);
/* A job of this mapping has made so many pages. */
void ahead_note_cost(const struct large_mapping *mapping, size_t nr_pages);
/* See page_costs_note_touches(). */
bool ahead_note_touches(const struct touch_effort *then,
			const struct touch_effort *now);

/* objections.c: return SHIM_NR_WHY, or why nothing may be made in this process now. */
enum shim_why ahead_objection(void);
/* In the child of a fork, which has one thread, and no memory that is locked. */
void ahead_forget_objections(void);

/* watcher_conditions.c: do limits on processes leave enough for threads of the shim? */
bool ahead_may_have_threads(void);
/* Neither the address space nor data has a limit. */
bool ahead_is_unlimited(void);
/* May the calling thread's mappings be watched, and in this process? */
bool ahead_is_ordinary(void);
/* Why they do not, if they do not. */
enum shim_why ahead_why_no_threads(void);
/* Return: SHIM_NR_WHY, or why not. */
enum shim_why ahead_why_not(void);
/* The administrator allows it (ktask.conf). */
bool ahead_is_allowed(void);

/* ahead_watcher.c: called when a helper has ended a window, or a mapping was added */
void ahead_wake_watcher(void);
/* Return: whether there is a watcher. */
bool ahead_start_watcher(void);
/* Has it ended because all that it watches rests? */
bool ahead_is_resting(void);
/* Has the watcher begun to end?  Then it watches nothing new. */
bool ahead_is_ending(void);

/* present_pages.c: by the watcher, which has its own table of descriptors by then */
void ahead_open_pages(void);
/* That watcher has ended, and its table with it. */
void ahead_forget_pages(void);
/*
 * An ahead_present_func of a struct large_mapping.  Pages of a mark in private memory must
 * have been written: a program that only reads gets no next window.
 */
int ahead_read_present(void *arg, size_t first, size_t nr,
		       unsigned char *present);

/* watch_shared.c: the watcher begins with it; has polled it.  Return: does it rest? */
void ahead_begin_shared(struct large_mapping *mapping);
void ahead_shared_polled(struct large_mapping *mapping, uint64_t now);
bool ahead_shared_rests(struct large_mapping *mapping, uint64_t now);
/* What other processes have made of it, and nobody has passed; 0 of private memory. */
size_t ahead_others_pages(const struct large_mapping *mapping);
/* Count its window, which the bound for all processes may not allow. */
bool ahead_may_make_shared(struct large_mapping *mapping);

/* next_window.c: choose and begin the next window; false: the process may no longer have
 * threads of the shim */
bool ahead_begin_window(struct large_mapping *mapping, uint64_t now_ns);
/* Whether no helper makes a window now, nor would one: the program's own threads keep all
 * CPUs busy, and no huge pages are to be advised for them. */
bool ahead_is_needless(const struct large_mapping *mapping, uint64_t now_ns);
/* Count for the report what was made since then, by jobs that took so much CPU time. */
void ahead_note_made(struct large_mapping *mapping, uint64_t cpu_ns);
/* The job of the last window has ended. */
void ahead_note_result(struct large_mapping *mapping);
/* A mapping has come or gone: measure the program's own touches anew. */
void ahead_restart_effort(void);
/* In the child of a fork, whose CPU time begins with 0. */
void ahead_forget_effort(void);

/* make_ahead.c: is there memory for what is watched?  Sets mapping->short_of_memory. */
bool ahead_has_memory(struct large_mapping *mapping);
/* Would there be memory for a first mapping of so many bytes?  By any thread. */
bool ahead_has_memory_for(size_t bytes);
/* Begin to make mapping->window; false: that is not possible now. */
bool ahead_make(struct large_mapping *mapping);
/* Is the job done?  @cancel: end it. */
bool ahead_made(struct large_mapping *mapping, bool cancel);

#endif /* PRELOAD_AHEAD_H */
