/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See remote_mapping.h.  The policy is that of `ktask run` (ktask/ahead).  But nobody
 * tells the daemon when memory goes, so it checks whether the page before each frontier
 * is still there.
 *
 * Behaves badly with a mapping of which the program discards a part, but not what was
 * made ahead: it gets no more windows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/remote_window.h"
#include "daemon/served_processes.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/running_threads.h"

#define PAGES_FILES "/sys/kernel/mm/transparent_hugepage"
/* A helper that had a CPU so short a time ago has it still. */
#define HELPED_NS 1000000
/* Larger mappings are looked at from both ends only: a scan would take too long for
 * the others. */
#define SCANNED_PAGES ((size_t)4 << 20)

static bool all_huge; /* the machine makes huge pages without advice */

bool remote_mapping_init_pages(void)
{
	char text[128];

	if (file_text(PAGES_FILES "/enabled", text, sizeof(text)) <= 0)
		return true;
	all_huge = strstr(text, "[always]");
	/* Sizes in between, since 6.8: what a touch makes cannot be told. */
	for (unsigned kib = 8; kib < 2048; kib *= 2) {
		char one[128];

		if (system_text(one, sizeof(one),
				PAGES_FILES "/hugepages-%ukB/enabled",
				kib) > 0 &&
		    !strstr(one, "[never]"))
			return false;
	}
	return true;
}

/* The few pages left to the program must be written: no second window for readers. */
static int read_present_pages(void *arg, size_t first, size_t nr,
			      unsigned char *present)
{
	const struct remote_mapping *mapping = arg;
	unsigned char all = nr <= AHEAD_STRIP_PAGES ? PAGE_PRESENT | PAGE_OWN
						    : PAGE_PRESENT;
	int error = remote_read_pages(mapping->process,
				      mapping->start + first * REMOTE_PAGE, nr,
				      present);

	for (size_t i = 0; i < nr && !error; i++)
		present[i] = (present[i] & all) == all;
	return error;
}

static void begin_tracking(struct remote_mapping *mapping)
{
	touch_tracker_init(&mapping->tracker,
			   (mapping->end - mapping->start) / REMOTE_PAGE,
			   mapping->start / REMOTE_PAGE % AHEAD_BLOCK_PAGES,
			   read_present_pages, mapping);
	mapping->tracker.first_marks = true;
}

struct remote_mapping *remote_mapping_new(const struct remote_process *process,
					  uintptr_t start, uintptr_t end,
					  uint64_t now_ns)
{
	struct remote_mapping *mapping = calloc(1, sizeof(*mapping));

	if (!mapping)
		return NULL;
	mapping->process = process;
	mapping->start = start;
	mapping->end = end;
	mapping->large_pages = all_huge;
	begin_tracking(mapping);
	poll_schedule_init(&mapping->schedule, now_ns);
	return mapping;
}

void remote_mapping_free(struct remote_mapping *mapping)
{
	remote_window_end(mapping, true);
	free(mapping);
}

bool remote_mapping_is_scanned(const struct remote_mapping *mapping)
{
	return mapping->tracker.nr_pages <= SCANNED_PAGES;
}

uint64_t remote_mapping_untouched(const struct remote_mapping *mapping)
{
	/* Nothing is made or polled there any more. */
	if (mapping->given_up)
		return 0;
	return touch_tracker_untouched(&mapping->tracker) * REMOTE_PAGE;
}

/* ---- memory that goes ---- */

static bool is_absent(struct remote_mapping *mapping, bool down, size_t at)
{
	size_t nr_pages = mapping->tracker.nr_pages;
	uintptr_t addr =
		mapping->start + touch_page(nr_pages, down, at) * REMOTE_PAGE;
	unsigned char bits = PAGE_PRESENT;

	return at < nr_pages &&
	       !remote_read_pages(mapping->process, addr, 1, &bits) &&
	       !(bits & PAGE_PRESENT);
}

/* Were windows discarded?  Check a page that was made: not the first page of a block,
 * which is left to the program. */
static bool windows_went(struct remote_mapping *mapping)
{
	const struct touch_tracker *tracker = &mapping->tracker;

	for (unsigned i = 0; i < tracker->nr; i++) {
		const struct touch_frontier *frontier = &tracker->frontiers[i];

		if (frontier->made > frontier->at &&
		    !is_absent(mapping, frontier->down, frontier->made - 1))
			return false;
	}
	return true;
}

static bool went_away(struct remote_mapping *mapping)
{
	const struct touch_tracker *tracker = &mapping->tracker;

	for (unsigned i = 0; i < tracker->nr; i++)
		if (is_absent(mapping, tracker->frontiers[i].down,
			      tracker->frontiers[i].at - 1))
			return true;
	return false;
}

/* The bound on waste begins anew only where all of the old waste went. */
static void begin_anew(struct remote_mapping *mapping)
{
	if (windows_went(mapping))
		begin_tracking(mapping);
	else
		mapping->given_up = true;
}

/* ---- windows ---- */

static void note_result(struct remote_mapping *mapping)
{
	bool helped = mapping->result.chunks && !mapping->preempted;
	int error = mapping->error;

	poll_schedule_helped(&mapping->schedule, helped);
	if (helped)
		mapping->helped_ns = clock_ns(CLOCK_MONOTONIC);
	if (mapping->grew && !mapping->large_pages) {
		/* Pages that seem to be touched may only belong to larger pages. */
		mapping->large_pages = true;
		begin_tracking(mapping);
	} else if (error) {
		mapping->given_up = true;
	}
}

static void begin_window(struct remote_mapping *mapping)
{
	struct touch_tracker *tracker = &mapping->tracker;

	if (!touch_tracker_wants(tracker))
		return;
	if (clock_ns(CLOCK_MONOTONIC) - mapping->helped_ns > HELPED_NS &&
	    cpus_are_overloaded()) {
		poll_schedule_helped(&mapping->schedule, false);
		return;
	}
	if (!served_memory_suffices(mapping->process))
		return;
	tracker->unit = mapping->large_pages ? AHEAD_BLOCK_PAGES : 1;
	if (!touch_tracker_window(tracker, &mapping->window))
		return;
	mapping->huge = mapping->large_pages;
	if (!remote_window_begin(mapping))
		poll_schedule_helped(&mapping->schedule, false);
}

/* ---- polling ---- */

/* Return: whether there are new frontiers, or an error. */
static int scan_if_due(struct remote_mapping *mapping, uint64_t now_ns)
{
	struct touch_tracker *tracker = &mapping->tracker;
	int found = 0;

	if (now_ns < mapping->schedule.scan_due_ns)
		return 0;
	if (!remote_window_may_begin()) {
		poll_schedule_postpone_scan(&mapping->schedule, now_ns);
		return 0;
	}
	if (!mapping->job && went_away(mapping))
		begin_anew(mapping);
	if (remote_mapping_is_scanned(mapping))
		found = touch_tracker_scan(tracker);
	poll_schedule_scanned(&mapping->schedule, found, now_ns,
			      clock_ns(CLOCK_MONOTONIC) - now_ns);
	return found;
}

static bool is_window_over(const struct remote_mapping *mapping)
{
	return !mapping->nr_blocks || mapping->error ||
	       touch_tracker_passed(&mapping->tracker, &mapping->window);
}

/* The program works on all CPUs, and would lose one to this thread. */
static bool leave_mapping(struct remote_mapping *mapping, uint64_t now_ns)
{
	if (!poll_schedule_may_leave(&mapping->schedule, now_ns) ||
	    remote_window_may_begin())
		return false;
	poll_schedule_leave(&mapping->schedule, now_ns);
	return true;
}

static void poll_mapping(struct remote_mapping *mapping, uint64_t now_ns)
{
	struct touch_tracker *tracker = &mapping->tracker;
	bool working = mapping->job;
	int moved, found;

	tracker->unit = mapping->large_pages ? AHEAD_BLOCK_PAGES : 1;
	poll_schedule_read(&mapping->schedule, now_ns);
	moved = touch_tracker_follow(tracker);
	found = moved < 0 ? moved : touch_tracker_probe(tracker);
	moved |= found;
	if (found >= 0)
		found = scan_if_due(mapping, now_ns);
	if (found < 0) {
		mapping->given_up = true;
		return;
	}
	if (working && remote_window_end(mapping, is_window_over(mapping))) {
		note_result(mapping);
		working = false;
		moved = 1;
	}
	if (!working && !mapping->given_up)
		begin_window(mapping);
	poll_schedule_next(&mapping->schedule, moved || found, mapping->job,
			   now_ns);
}

uint64_t remote_mapping_serve(struct remote_mapping *mapping, uint64_t now_ns)
{
	bool made = mapping->job && (!mapping->nr_blocks || mapping->error);

	if (mapping->given_up) {
		remote_window_end(mapping, true);
		return UINT64_MAX;
	}
	if ((now_ns >= mapping->schedule.due_ns || made) &&
	    !leave_mapping(mapping, now_ns))
		poll_mapping(mapping, now_ns);
	return mapping->schedule.due_ns;
}
