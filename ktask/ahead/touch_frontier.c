/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Follows frontiers and places windows ahead of them; find_frontiers.c finds them.  See
 * touch_frontier.h.  Behaves badly: a program that touches all pages of the strips, but not
 * the pages between them, gets windows nevertheless, within the bound.
 */
#include <string.h>

#include "ahead/frontier_territory.h"
#include "ahead/present_runs.h"

/* The mark is behind this part of the window. */
#define MARK_PART 4
/* Huge pages behind the hole, if the next ones only have to be advised in time. */
#define BEHIND_BLOCKS 2
/* The program has left a frontier when it touched so many times its window elsewhere. */
#define LEFT_TIMES ((size_t)2 * AHEAD_FRONTIERS)
/* A program that left out pages has passed the window if it touched so many pages behind
 * it (1 MiB), and if at most this part of the pages that were left to it is absent. */
#define BEHIND_PAGES ((size_t)256)
#define HOLES_PART 8
/* An edge counts as moving once it has advanced so far. */
#define MOVED_PAGES ((size_t)64)

void touch_tracker_init(struct touch_tracker *tracker, size_t nr_pages,
			size_t phase, ahead_present_func read_present,
			void *arg)
{
	memset(tracker, 0, sizeof(*tracker));
	tracker->read_present = read_present;
	tracker->arg = arg;
	tracker->nr_pages = nr_pages;
	tracker->phase = phase;
	tracker->unit = 1;
	tracker->first = ahead_first_pages(nr_pages);
}

/* ---- following ---- */

static size_t least_move(const struct touch_tracker *tracker)
{
	return tracker->unit > MOVED_PAGES ? tracker->unit : MOVED_PAGES;
}

/* The block in which it was before may be full by now. */
static void tell_passed(const struct touch_tracker *tracker,
			const struct touch_frontier *frontier, size_t at)
{
	size_t nr = tracker->nr_pages, from = frontier->whole;

	if (from + AHEAD_BLOCK_PAGES < frontier->at)
		from = frontier->at - AHEAD_BLOCK_PAGES;
	if (frontier->down)
		territory_tell(tracker, nr - at, nr - from);
	else
		territory_tell(tracker, from, at);
}

static void advance_to(struct touch_tracker *tracker,
		       struct touch_frontier *frontier, size_t at)
{
	tell_passed(tracker, frontier, at);
	tracker->touched += at - frontier->at;
	frontier->at = at;
}

/* Return: 1 if the program has touched what was left to it before @upto, 0, or an
 * error. */
static int has_come(struct touch_tracker *tracker,
		    const struct touch_frontier *frontier, size_t upto)
{
	/* In a window of huge pages all must be present, the hole included. */
	size_t whole = frontier->huge ? upto : frontier->start;
	long at = present_until(tracker, frontier->down, frontier->lead, whole);

	if (at < (long)whole)
		return at < 0 ? (int)at : 0;
	for (size_t block = frontier->start; !frontier->huge && block < upto;
	     block += AHEAD_BLOCK_PAGES) {
		long run = present_run(tracker, frontier->down, block, 1);

		if (run <= 0)
			return (int)run;
	}
	return 1;
}

/* Return: 1 if the program has come to the mark, 0, or an error. */
static int reach_mark(struct touch_tracker *tracker,
		      struct touch_frontier *frontier)
{
	long run = present_run(tracker, frontier->down, frontier->mark,
			       AHEAD_STRIP_PAGES);
	size_t end = frontier->mark + AHEAD_STRIP_PAGES;
	int come;

	if (run < (long)AHEAD_STRIP_PAGES)
		return run < 0 ? (int)run : 0;
	if (frontier->huge)
		end = frontier->mark + AHEAD_BLOCK_PAGES;
	come = has_come(tracker, frontier,
			frontier->huge ? end : frontier->mark);
	if (come <= 0)
		return come;
	advance_to(tracker, frontier, end);
	frontier->mark = AHEAD_NOWHERE;
	return 1;
}

/* Return: 1 if the program has come through all windows, 0, or an error. */
static int pass_window(struct touch_tracker *tracker,
		       struct touch_frontier *frontier)
{
	long run;

	if (frontier->made >= tracker->nr_pages)
		return 0;
	/* The page behind the window is the program's own. */
	run = present_run(tracker, frontier->down, frontier->made, 1);
	return run <= 0 ? (int)run
			: has_come(tracker, frontier, frontier->made);
}

/* The program's pages of one block of small ones. */
static size_t left_of_block(const struct touch_frontier *frontier, size_t block)
{
	return block == frontier->mark ? AHEAD_STRIP_PAGES : 1;
}

/* Of the pages left to the program, @left of them, how many are absent; or an error. */
static long count_holes(struct touch_tracker *tracker,
			const struct touch_frontier *frontier, size_t *left)
{
	/* In a window of huge pages all must be present; the program makes the hole. */
	size_t whole = frontier->huge ? frontier->made : frontier->start;
	long absent =
		absent_between(tracker, frontier->down, frontier->lead, whole);

	*left = frontier->start - frontier->lead +
		(frontier->huge ? AHEAD_BLOCK_PAGES : 0);
	for (size_t block = whole; absent >= 0 && block < frontier->made;
	     block += AHEAD_BLOCK_PAGES) {
		size_t nr = left_of_block(frontier, block);
		long holes = absent_between(tracker, frontier->down, block,
					    block + nr);

		*left += nr;
		absent = holes < 0 ? holes : absent + holes;
	}
	return absent;
}

/* Return: whether the program has gone on right behind the window, or an error. */
static int is_behind(struct touch_tracker *tracker,
		     const struct touch_frontier *frontier)
{
	size_t limit = frontier_limit(tracker, frontier);
	long run;

	if (frontier->made + BEHIND_PAGES > limit)
		return 0;
	/* Mostly it has not, which one page tells. */
	run = present_run(tracker, frontier->down, frontier->made, 1);
	if (run > 0)
		run = present_run(tracker, frontier->down, frontier->made,
				  BEHIND_PAGES);
	return run < 0 ? (int)run : run == (long)BEHIND_PAGES;
}

/*
 * A JVM leaves out the end of a thread's buffer and continues behind it, so it would never
 * reach the mark.  The pages left to the program show which part it leaves out.
 *
 * Return: 1 if the program has passed the window in this way, 0, or an error.
 */
static int pass_with_holes(struct touch_tracker *tracker,
			   struct touch_frontier *frontier)
{
	int behind = is_behind(tracker, frontier);
	size_t made = frontier->made - frontier->start, left;
	long absent;

	if (behind <= 0)
		return behind;
	absent = count_holes(tracker, frontier, &left);
	if (absent < 0)
		return (int)absent;
	if ((size_t)absent > left / HOLES_PART)
		return 0;
	tracker->skipped += (made * (size_t)absent + left - 1) / left;
	frontier->whole = frontier->made;
	advance_to(tracker, frontier, frontier->made);
	frontier->mark = AHEAD_NOWHERE;
	return 1;
}

/* Return: 1 if it has moved, 0, or an error. */
static int follow_one(struct touch_tracker *tracker,
		      struct touch_frontier *frontier)
{
	size_t before = frontier->at, from = frontier->at;
	long at;

	if (frontier->mark != AHEAD_NOWHERE) {
		int reached = reach_mark(tracker, frontier);

		if (!reached)
			reached = pass_with_holes(tracker, frontier);
		if (reached <= 0)
			return reached;
	}
	if (frontier->made > frontier->at) {
		int passed = pass_window(tracker, frontier);

		if (!passed)
			passed = pass_with_holes(tracker, frontier);
		if (passed <= 0)
			return passed < 0 ? passed : frontier->at > before;
		from = frontier->made;
	}
	at = present_until(tracker, frontier->down, from,
			   frontier_limit(tracker, frontier));
	if (at < 0)
		return (int)at;
	if ((size_t)at > frontier->at)
		advance_to(tracker, frontier, (size_t)at);
	if (frontier->at - before >= least_move(tracker))
		frontier->moves = true;
	return frontier->at > before;
}

static void drop_frontier(struct touch_tracker *tracker, unsigned index)
{
	tracker->nr--;
	memmove(&tracker->frontiers[index], &tracker->frontiers[index + 1],
		(tracker->nr - index) * sizeof(*tracker->frontiers));
}

/* The next one in the same direction, which this one has reached; or NULL. */
static struct touch_frontier *find_reached(struct touch_tracker *tracker,
					   const struct touch_frontier *from)
{
	for (unsigned i = 0; i < tracker->nr; i++) {
		struct touch_frontier *to = &tracker->frontiers[i];

		if (to != from && to->down == from->down &&
		    to->origin == from->at && from->made <= from->at)
			return to;
	}
	return NULL;
}

/* Two territories become one, which remains known. */
static void merge_reached(struct touch_tracker *tracker)
{
	for (unsigned i = tracker->nr; i-- > 0;) {
		struct touch_frontier *from = &tracker->frontiers[i];
		struct touch_frontier *to = find_reached(tracker, from);

		if (!to)
			continue;
		to->origin = from->origin;
		to->moves |= from->moves;
		drop_frontier(tracker, i);
	}
}

/* It can go no further, and another knows all that it knows. */
static bool is_needless(const struct touch_tracker *tracker,
			const struct touch_frontier *frontier)
{
	size_t start, end, others_start, others_end;

	if (frontier->made > frontier->at ||
	    frontier_limit(tracker, frontier) > frontier->at)
		return false;
	frontier_territory(tracker, frontier, &start, &end);
	for (unsigned i = 0; i < tracker->nr; i++) {
		if (&tracker->frontiers[i] == frontier)
			continue;
		frontier_territory(tracker, &tracker->frontiers[i],
				   &others_start, &others_end);
		if (others_start <= start && end <= others_end)
			return true;
	}
	return false;
}

static void drop_needless(struct touch_tracker *tracker)
{
	for (unsigned i = tracker->nr; i-- > 0;)
		if (is_needless(tracker, &tracker->frontiers[i]))
			drop_frontier(tracker, i);
}

int touch_tracker_follow(struct touch_tracker *tracker)
{
	int moved = 0;

	for (unsigned i = 0; i < tracker->nr; i++) {
		int error = follow_one(tracker, &tracker->frontiers[i]);

		if (error < 0)
			return error;
		moved |= error;
	}
	if (moved) {
		merge_reached(tracker);
		drop_needless(tracker);
	}
	return moved;
}

/* ---- windows ---- */

unsigned touch_tracker_moving(const struct touch_tracker *tracker)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < tracker->nr; i++)
		nr += tracker->frontiers[i].moves;
	return nr;
}

size_t touch_tracker_untouched(const struct touch_tracker *tracker)
{
	size_t touched = tracker->touched + tracker->present;

	if (!touch_tracker_moving(tracker) || touched >= tracker->nr_pages)
		return 0;
	return tracker->nr_pages - touched;
}

size_t touch_tracker_pending(const struct touch_tracker *tracker)
{
	size_t pending = tracker->skipped;

	for (unsigned i = 0; i < tracker->nr; i++)
		pending += frontier_end(&tracker->frontiers[i]) -
			   tracker->frontiers[i].at;
	return pending;
}

long touch_tracker_present(struct touch_tracker *tracker)
{
	long present = (long)touch_tracker_pending(tracker);

	for (unsigned i = 0; i < tracker->nr; i++) {
		const struct touch_frontier *frontier = &tracker->frontiers[i];
		long absent =
			absent_between(tracker, frontier->down, frontier->at,
				       frontier_end(frontier));

		if (absent < 0)
			return absent;
		present -= absent;
	}
	return present;
}

bool touch_tracker_passed(const struct touch_tracker *tracker,
			  const struct touch_window *window)
{
	for (unsigned i = 0; i < tracker->nr; i++)
		if (tracker->frontiers[i].down == window->down &&
		    tracker->frontiers[i].origin <= window->start &&
		    tracker->frontiers[i].at >= window->end)
			return true;
	return false;
}

bool touch_tracker_done(const struct touch_tracker *tracker)
{
	return tracker->touched >= tracker->nr_pages;
}

/* The next edge of a block from @at on. */
static size_t block_edge(size_t at, size_t phase)
{
	size_t rest = (at + phase) % AHEAD_BLOCK_PAGES;

	return rest ? at + AHEAD_BLOCK_PAGES - rest : at;
}

/*
 * Choose the mark.  It is the first pages of a block in the first half of the window, so
 * that the next window is made while the program touches the rest of this one.  If the
 * window is one block, the mark is behind that block, or it is the block's first pages.
 *
 * In a window of huge pages the mark is in the hole, a block of small pages that the
 * program has to fill.  The program touches the blocks behind the hole while the next
 * window is made, or only advised.  With the hole in the middle a helper that clears
 * memory about as fast as the program passes it would idle for a quarter of the time, since
 * the two meet in the next window before its hole.  If one touch fills the hole, the hole is
 * the first block: a touch in it shows nothing about the rest.
 */
static size_t place_mark(const struct touch_tracker *tracker,
			 const struct touch_window *window, size_t limit)
{
	size_t blocks = (window->end - window->start) / AHEAD_BLOCK_PAGES;
	size_t before = blocks / MARK_PART ? blocks / MARK_PART : 1;
	size_t mark = window->start + before * AHEAD_BLOCK_PAGES;

	if (blocks < 2)
		mark = tracker->first_marks ? window->start : window->end;
	if (tracker->unit > 1) {
		size_t behind = blocks - 1 - before;

		if (!tracker->advised)
			behind = blocks - 1;
		else if (tracker->alone && behind > BEHIND_BLOCKS)
			behind = BEHIND_BLOCKS;
		mark = window->end - (behind + 1) * AHEAD_BLOCK_PAGES;
	}
	return mark + AHEAD_STRIP_PAGES <= limit ? mark : AHEAD_NOWHERE;
}

/* A window that would reach the limit ends a strip before it, so that the end of the
 * program's run can be seen. */
static size_t last_edge(const struct touch_tracker *tracker, size_t limit,
			size_t phase)
{
	size_t end = limit > AHEAD_STRIP_PAGES ? limit - AHEAD_STRIP_PAGES : 0;
	size_t rest = (end + phase) % tracker->unit;

	return end > rest ? end - rest : 0;
}

/* Threads that go on side by side touch as much each. */
static bool was_left(const struct touch_frontier *frontier, size_t elsewhere)
{
	size_t before = frontier->elsewhere;

	return elsewhere > before &&
	       elsewhere - before > LEFT_TIMES * frontier->window;
}

static bool make_window(struct touch_tracker *tracker,
			struct touch_frontier *frontier,
			struct touch_window *window)
{
	const struct ahead_budget budget = {
		.first = tracker->first,
		.touched = tracker->touched,
		.pending = touch_tracker_pending(tracker) + tracker->others,
		.frontiers = touch_tracker_moving(tracker),
		.left = tracker->unit > 1 ? AHEAD_BLOCK_PAGES : 0,
	};
	size_t phase =
		touch_phase(tracker->nr_pages, tracker->phase, frontier->down);
	size_t lead = frontier_end(frontier), own = lead - frontier->at;
	size_t elsewhere = tracker->touched - (frontier->at - frontier->origin);
	size_t last = was_left(frontier, elsewhere) ? 0 : frontier->window;
	size_t pages = ahead_window_pages(&budget, last, own);
	size_t limit = frontier_limit(tracker, frontier);
	size_t start = block_edge(lead, phase);

	/* The hole is not made, or only where it fits. */
	if (pages && tracker->unit > 1)
		pages += AHEAD_BLOCK_PAGES;
	/* Pages before the edge count as made, because they may never be touched. */
	if (!pages || start >= limit)
		return false;
	window->start = start;
	window->end = limit - start < pages + AHEAD_STRIP_PAGES
			      ? last_edge(tracker, limit, phase)
			      : start + pages;
	if (window->end <= start ||
	    (tracker->unit > 1 && window->end - start < 2 * AHEAD_BLOCK_PAGES))
		return false;
	window->before = 0;
	window->down = frontier->down;
	window->step = 0;
	window->strip = AHEAD_NOWHERE;
	window->hole_fits = window->end - lead <= ahead_left_pages(&budget);
	window->hole_is_made = false;
	window->filled = frontier->huge ? frontier->hole : AHEAD_NOWHERE;
	window->mark = place_mark(tracker, window, limit);
	frontier->hole = window->mark;
	frontier->lead = lead;
	frontier->start = window->start;
	frontier->huge = tracker->unit > 1;
	frontier->made = window->end;
	frontier->mark = window->mark;
	frontier->window =
		tracker->unit > 1 ? pages - AHEAD_BLOCK_PAGES : pages;
	frontier->elsewhere = elsewhere;
	return true;
}

void touch_tracker_rest(struct touch_tracker *tracker)
{
	for (unsigned i = 0; i < tracker->nr; i++)
		tracker->frontiers[i].window = 0;
}

static bool wants_window(const struct touch_frontier *frontier)
{
	return frontier->moves && frontier->mark == AHEAD_NOWHERE;
}

bool touch_tracker_wants(const struct touch_tracker *tracker)
{
	for (unsigned i = 0; i < tracker->nr; i++)
		if (wants_window(&tracker->frontiers[i]))
			return true;
	return false;
}

bool touch_tracker_window(struct touch_tracker *tracker,
			  struct touch_window *window)
{
	for (unsigned i = 0; i < tracker->nr; i++) {
		unsigned turn = (tracker->turn + i) % tracker->nr;
		struct touch_frontier *frontier = &tracker->frontiers[turn];

		if (!wants_window(frontier))
			continue;
		if (!make_window(tracker, frontier, window))
			continue;
		tracker->turn = turn + 1;
		return true;
	}
	return false;
}
