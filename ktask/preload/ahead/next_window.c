/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The next window of a mapping: helpers make it, or the program itself with huge pages
 * that are advised for it, or nobody does anything.
 *
 * Helpers get windows only where a CPU is idle.  Beside other programs, and beside a
 * program whose threads keep all CPUs busy, a helper would take the CPU of the thread
 * that would make the page itself.  Huge pages save faults there too.
 *
 * Locking: large_mappings.h.  Only the watcher runs this code.
 */
#include <sys/resource.h>

#include "ahead/cpu_saturation.h"
#include "preload/ahead/ahead.h"
#include "preload/ahead/grown_areas.h"
#include "preload/shim.h"
#include "util/clock.h"
#include "util/cpus.h"
#include "util/idle_cpus.h"
#include "util/running_threads.h"

/* A helper that had a CPU this recently probably still has it. */
#define HELPED_NS 1000000

static uint64_t helpers_ns; /* CPU time of helpers, in jobs that have ended */
static struct cpu_saturation program_saturation;
static struct idle_cpus allowed_cpus;
static struct touch_effort last_effort;
/* No helper has worked since last_effort was noted, and no mapping has gone. */
static bool is_effort_known;

void ahead_restart_effort(void)
{
	is_effort_known = false;
}

void ahead_forget_effort(void)
{
	helpers_ns = 0;
	program_saturation = (struct cpu_saturation){ 0 };
	allowed_cpus = (struct idle_cpus){ 0 };
	ahead_restart_effort();
}

void ahead_note_made(struct large_mapping *mapping, uint64_t cpu_ns)
{
	size_t made = mapping->made_pages, told = mapping->told.made;

	mapping->told.made = made;
	shim_count_ahead((made - told) * AHEAD_PAGE_BYTES, cpu_ns);
}

/* What a job made is known when it has ended. */
void ahead_note_result(struct large_mapping *mapping)
{
	bool helped = mapping->result.chunks && !mapping->preempted;
	unsigned long made = mapping->made_pages - mapping->made_before;

	ahead_restart_effort();
	helpers_ns += mapping->result.cpu_ns;
	/* Such a window says nothing of either size.  Shared pages cost more. */
	if (!mapping->turned_huge && !mapping->waste)
		ahead_note_cost(mapping, made);
	ahead_note_made(mapping, mapping->result.cpu_ns);
	poll_schedule_helped(&mapping->schedule, helped);
	if (helped)
		mapping->helped_ns = clock_ns(CLOCK_MONOTONIC);
}

static bool has_jobs(void)
{
	for (size_t i = 0; i < large_mappings_used(); i++)
		if (atomic_load(&large_mappings[i].job))
			return true;
	return false;
}

/* CPU time of all threads of the program.  The CPU time of helpers is known, and
 * subtracted, when their job has ended. */
static uint64_t program_cpu_ns(void)
{
	uint64_t all_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t own_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + helpers_ns;

	return all_ns > own_ns ? all_ns - own_ns : 0;
}

/* Does the program keep all its CPUs busy by itself? */
static bool program_fills_cpus(uint64_t now)
{
	struct kt_cpus cpus;

	if (has_jobs() || !cpus_get_affinity(&cpus))
		return false;
	return cpu_saturation_note(&program_saturation, now, program_cpu_ns(),
				   cpus_count(&cpus));
}

/*
 * Will a helper probably get a CPU and keep it?  If it lost its CPU while it holds the
 * lock of the address space, the program might wait for that lock (0.5 s beside 20 busy
 * threads).
 */
static bool is_helper_likely(const struct large_mapping *mapping, uint64_t now)
{
	if (overload_is_ignored())
		return true;
	return !program_fills_cpus(now) &&
	       (clock_ns(CLOCK_MONOTONIC) - mapping->helped_ns <= HELPED_NS ||
		!cpus_are_busy() ||
		idle_cpus_remain(&allowed_cpus, now, helpers_ns));
}

bool ahead_is_needless(const struct large_mapping *mapping, uint64_t now)
{
	return !overload_is_ignored() && !mapping->is_left &&
	       !ahead_wants_huge(mapping, now) && program_fills_cpus(now);
}

/* CPU time and faults are the process's, so the pages are those of all mappings. */
static void note_touches(void)
{
	struct touch_effort now;
	struct rusage usage;

	if (has_jobs() || getrusage(RUSAGE_SELF, &usage))
		return;
	now = (struct touch_effort){
		.cpu_ns = program_cpu_ns(),
		.pages = large_mappings_touched(),
		.faults = (size_t)usage.ru_minflt,
	};
	if (is_effort_known && !ahead_note_touches(&last_effort, &now))
		return;
	last_effort = now;
	is_effort_known = true;
}

/* The program makes its pages itself, with fewer faults. */
static void advise_window(struct large_mapping *mapping, uint64_t now)
{
	struct touch_tracker *tracker = &mapping->tracker;
	const struct touch_window *window = &mapping->window;

	note_touches();
	if (!ahead_wants_huge(mapping, now))
		return;
	tracker->unit = AHEAD_BLOCK_PAGES;
	tracker->advised = tracker->alone = true;
	mapping->is_left = false;
	if (!touch_tracker_window(tracker, &mapping->window) ||
	    !ahead_has_memory(mapping))
		return;
	if (!ahead_advise_huge(mapping, window))
		return;
	mapping->is_left = true;
	mapping->advised_pages +=
		window->end - window->start - AHEAD_BLOCK_PAGES;
	poll_schedule_advised(&mapping->schedule);
}

/* Helpers make the window that was left to the program if CPUs idle by now.  They skip
 * pages that the program has made. */
static void make_left_window(struct large_mapping *mapping, uint64_t now)
{
	if (touch_tracker_passed(&mapping->tracker, &mapping->window) ||
	    ahead_unit_pages(mapping) == 1) {
		mapping->is_left = false;
	} else if (is_helper_likely(mapping, now) &&
		   ahead_has_memory(mapping)) {
		mapping->is_left = false;
		mapping->huge = true;
		mapping->nr_windows += ahead_make(mapping);
	}
}

static void make_window(struct large_mapping *mapping, uint64_t now)
{
	struct touch_tracker *tracker = &mapping->tracker;
	bool advise = ahead_wants_huge(mapping, now);

	tracker->advised = advise;
	tracker->alone = false;
	tracker->unit = advise ? AHEAD_BLOCK_PAGES : ahead_unit_pages(mapping);
	mapping->is_left = false;
	tracker->others = ahead_others_pages(mapping);
	if (!touch_tracker_window(tracker, &mapping->window) ||
	    !ahead_has_memory(mapping) ||
	    (mapping->waste && !ahead_may_make_shared(mapping)))
		return;
	advise = advise && ahead_advise_huge(mapping, &mapping->window);
	mapping->window.hole_is_made = advise && mapping->window.hole_fits;
	tracker->unit = ahead_unit_pages(mapping);
	mapping->huge = tracker->unit > 1;
	mapping->nr_windows += ahead_make(mapping);
}

/* Pages that lie apart are small ones. */
static void make_steps(struct large_mapping *mapping)
{
	if (ahead_unit_pages(mapping) > 1 ||
	    !touch_steps_window(&mapping->steps, &mapping->window) ||
	    !ahead_has_memory(mapping))
		return;
	mapping->is_left = mapping->huge = false;
	mapping->nr_windows += ahead_make(mapping);
}

bool ahead_begin_window(struct large_mapping *mapping, uint64_t now)
{
	bool in_steps =
		!mapping->tracker.nr && touch_steps_wants(&mapping->steps);
	bool wanted = in_steps || touch_tracker_wants(&mapping->tracker);

	if (shim_is_dry() || (!wanted && !mapping->is_left))
		return true;
	if (!ahead_may_have_threads())
		return false;
	/* The program may unmap or change a found mapping without the shim. */
	if (mapping->found &&
	    !grown_areas_is_private(mapping->start, mapping->end)) {
		large_mapping_give_up(mapping);
		return true;
	}
	if (!wanted) {
		make_left_window(mapping, now);
		return true;
	}
	if (is_helper_likely(mapping, now)) {
		if (in_steps)
			make_steps(mapping);
		else
			make_window(mapping, now);
		return true;
	}
	mapping->nr_windows++;
	poll_schedule_helped(&mapping->schedule, false);
	if (!in_steps)
		advise_window(mapping, now);
	return true;
}
