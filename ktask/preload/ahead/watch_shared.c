/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the watcher does otherwise where a mapping is shared with other processes: it
 * counts for all of them what it makes and what is passed (ahead/shared_waste.h), and it
 * rests where nothing moves (inherited_mappings.h).
 *
 * Locking: large_mappings.h.  Only the watcher runs this code.
 */
#include "preload/ahead/ahead.h"
#include "preload/ahead/inherited_mappings.h"

/* A process that has watched for so long has not done so in vain. */
#define YOUNG_NS 50000000u

/* Of the first and the last block the mapping may have a part. */
static void note_passed(void *arg, size_t first, size_t end)
{
	const struct large_mapping *mapping = arg;
	size_t phase = mapping->tracker.phase;

	shared_waste_pass(mapping->waste, first ? phase + first : 0,
			  phase + end +
				  (end == mapping->tracker.nr_pages
					   ? AHEAD_BLOCK_PAGES - 1
					   : 0));
}

void ahead_begin_shared(struct large_mapping *mapping)
{
	mapping->young = true;
	mapping->touched_before = 0;
	mapping->tracker.passed = note_passed;
	if (!ahead_shares_small())
		large_mapping_give_up(mapping);
}

/* Children that end soon need no watcher. */
static void note_age(struct large_mapping *mapping, uint64_t now)
{
	bool helped = atomic_load(&mapping->made_pages);

	if (!mapping->young || (!helped && now - mapping->since_ns < YOUNG_NS))
		return;
	mapping->young = false;
	if (helped)
		shared_waste_help(mapping->waste);
	else
		shared_waste_last(mapping->waste);
}

/*
 * A server has hundreds of processes that wait for a request.  So none of them is polled
 * for ever.
 */
static void rest_if_idle(struct large_mapping *mapping)
{
	size_t touched = mapping->tracker.touched;

	if (!poll_schedule_rests(&mapping->schedule))
		return;
	/* Where many processes ask, its helper may wait for a CPU for as long as they do. */
	if (atomic_load(&mapping->job)) {
		ahead_made(mapping, true);
		ahead_note_result(mapping);
	}
	atomic_store(&mapping->rests, true);
	inherited_mappings_rest(touched == mapping->touched_before);
	mapping->touched_before = touched;
}

void ahead_shared_polled(struct large_mapping *mapping, uint64_t now)
{
	note_age(mapping, now);
	rest_if_idle(mapping);
}

/* A mapping that was woken begins as a new one does, but knows what it knew. */
bool ahead_shared_rests(struct large_mapping *mapping, uint64_t now)
{
	if (atomic_load(&mapping->rests))
		return true;
	if (poll_schedule_rests(&mapping->schedule))
		poll_schedule_init(&mapping->schedule, now);
	return false;
}

/* What other processes have made of it, and nobody has passed. */
size_t ahead_others_pages(const struct large_mapping *mapping)
{
	size_t own = touch_tracker_pending(&mapping->tracker), all;

	if (!mapping->waste)
		return 0;
	all = shared_waste_pages(mapping->waste);
	return all > own ? all - own : 0;
}

/* The bound holds for all processes that share the memory. */
bool ahead_may_make_shared(struct large_mapping *mapping)
{
	const struct touch_tracker *tracker = &mapping->tracker;
	const struct touch_window *window = &mapping->window;
	size_t nr = tracker->nr_pages;
	size_t first = window->down ? nr - window->end : window->start;

	return shared_waste_add(
		mapping->waste, tracker->phase + first,
		tracker->phase + first + window->end - window->start,
		ahead_allowed_pages(tracker->first, tracker->touched));
}
