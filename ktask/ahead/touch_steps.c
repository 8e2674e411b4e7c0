/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See touch_steps.h. */
#include <string.h>

#include "ahead/touch_steps.h"

/* WALK_PAGES pages at the same distance are a walk, MOVED_PAGES more show that it moves. */
#define WALK_PAGES ((size_t)24)
#define MOVED_PAGES ((size_t)16)
/* Pages of the first window and of the largest, and the part before the mark. */
#define WINDOW_FIRST ((size_t)64)
#define WINDOW_MOST ((size_t)4096)
#define MARK_PART 4

void touch_steps_init(struct touch_steps *steps, size_t nr_pages, size_t phase,
		      ahead_present_func read_present, void *arg)
{
	memset(steps, 0, sizeof(*steps));
	steps->read_present = read_present;
	steps->arg = arg;
	steps->nr_pages = nr_pages;
	steps->phase = phase;
	steps->first = ahead_first_pages(nr_pages);
	steps->mark = AHEAD_NOWHERE;
}

/* ---- reading what is present ---- */

/* Return: 1 if the page at @at is present and the program's own, 0, or an error. */
static int is_present(struct touch_steps *steps, size_t at)
{
	unsigned char present = 0;
	int error;

	if (at >= steps->nr_pages)
		return 0;
	error = steps->read_present(
		steps->arg, touch_page(steps->nr_pages, steps->down, at), 1,
		&present);
	return error ? error : present & 1;
}

/* @nr pages from @at on, in that direction. */
static int read_pages(struct touch_steps *steps, size_t at, size_t nr,
		      unsigned char present[AHEAD_READ_PAGES])
{
	size_t first = steps->down ? steps->nr_pages - at - nr : at;
	int error = steps->read_present(steps->arg, first, nr, present);

	for (size_t i = 0; !error && steps->down && i < nr / 2; i++) {
		unsigned char other = present[nr - 1 - i];

		present[nr - 1 - i] = present[i];
		present[i] = other;
	}
	return error;
}

/* Return: 1 if there is one, *at: the first from *at on; 0, or an error. */
static int find_present(struct touch_steps *steps, size_t *at)
{
	unsigned char present[AHEAD_READ_PAGES];

	while (*at < steps->nr_pages) {
		size_t nr = steps->nr_pages - *at;
		int error;

		nr = nr < AHEAD_READ_PAGES ? nr : AHEAD_READ_PAGES;
		error = read_pages(steps, *at, nr, present);
		if (error)
			return error;
		for (size_t i = 0; i < nr; i++, ++*at)
			if (present[i] & 1)
				return 1;
	}
	return 0;
}

/*
 * Return: the position of the first absent page among @at, @at + step and so on, or an
 * error.  The program touches these in order, so search by doubling and then by halving.
 */
static long find_absent(struct touch_steps *steps, size_t at)
{
	size_t low = 0, high = 1;
	int there;

	for (;;) {
		there = is_present(steps, at + (high - 1) * steps->step);
		if (there < 0)
			return there;
		if (!there)
			break;
		low = high;
		high *= 2;
	}
	/* Page low - 1 is present, page high - 1 is absent. */
	for (high--; high > low;) {
		size_t middle = low + (high - low) / 2;

		there = is_present(steps, at + middle * steps->step);
		if (there < 0)
			return there;
		if (there)
			low = middle + 1;
		else
			high = middle;
	}
	return (long)(at + low * steps->step);
}

/* ---- finding ---- */

/* The distance from the page at @at to each of the next ones; 0: there is none. */
static size_t common_distance(const unsigned char *present, size_t nr)
{
	size_t last = 0, step = 0, pages = 1;

	for (size_t i = 1; i < nr && pages < WALK_PAGES; i++) {
		if (!(present[i] & 1)) {
			if (step && i - last > step)
				return 0;
			continue;
		}
		if (!step)
			step = i;
		if (i - last != step || step < 2 || step > STEP_MOST)
			return 0;
		last = i;
		pages++;
	}
	return pages == WALK_PAGES ? step : 0;
}

static int find_in_direction(struct touch_steps *steps)
{
	unsigned char present[AHEAD_READ_PAGES];
	size_t at = 0, nr;
	int found = find_present(steps, &at);
	long end;

	if (found <= 0)
		return found;
	nr = steps->nr_pages - at;
	nr = nr < AHEAD_READ_PAGES ? nr : AHEAD_READ_PAGES;
	found = read_pages(steps, at, nr, present);
	if (found)
		return found;
	steps->step = common_distance(present, nr);
	if (!steps->step)
		return 0;
	end = find_absent(steps, at);
	if (end < 0)
		return (int)end;
	/* It can go no further: then it comes from there. */
	if ((size_t)end >= steps->nr_pages) {
		steps->step = 0;
		return 0;
	}
	steps->touched = ((size_t)end - at) / steps->step;
	steps->at = steps->made = steps->found_at = (size_t)end;
	return 1;
}

/* If the known walk does not move, the program may have turned round. */
int touch_steps_find(struct touch_steps *steps)
{
	int found;

	if (steps->moves)
		return 0;
	if (steps->step)
		steps->down = !steps->down;
	steps->step = 0;
	found = find_in_direction(steps);
	if (found)
		return found;
	steps->down = !steps->down;
	return find_in_direction(steps);
}

/* ---- following ---- */

static void advance_to(struct touch_steps *steps, size_t at)
{
	steps->touched += (at - steps->at) / steps->step;
	steps->at = at;
	if (steps->made < at)
		steps->made = at;
}

/* Return: 1 if the program has touched all of the strip, 0, or an error. */
static int reach_mark(struct touch_steps *steps)
{
	for (size_t i = 0; i < AHEAD_STRIP_PAGES; i++) {
		int there = is_present(steps, steps->mark + i * steps->step);

		if (there <= 0)
			return there;
	}
	advance_to(steps, steps->mark + AHEAD_STRIP_PAGES * steps->step);
	steps->mark = AHEAD_NOWHERE;
	return 1;
}

int touch_steps_follow(struct touch_steps *steps)
{
	size_t before = steps->at;
	int there;
	long end;

	if (!steps->step)
		return 0;
	if (steps->mark != AHEAD_NOWHERE) {
		there = reach_mark(steps);
		if (there <= 0)
			return there;
	}
	if (steps->made > steps->at) {
		/* The page behind the windows is the program's own. */
		there = is_present(steps, steps->made);
		if (there <= 0)
			return there < 0 ? there : steps->at > before;
		advance_to(steps, steps->made);
	}
	end = find_absent(steps, steps->at);
	if (end < 0)
		return (int)end;
	advance_to(steps, (size_t)end);
	if (steps->at >= steps->found_at + MOVED_PAGES * steps->step)
		steps->moves = true;
	return steps->at > before;
}

/* ---- windows ---- */

size_t touch_steps_pending(const struct touch_steps *steps)
{
	return steps->step ? (steps->made - steps->at) / steps->step : 0;
}

bool touch_steps_wants(const struct touch_steps *steps)
{
	return steps->moves && steps->mark == AHEAD_NOWHERE &&
	       steps->made < steps->nr_pages;
}

bool touch_steps_window(struct touch_steps *steps, struct touch_window *window)
{
	size_t allowed = ahead_allowed_pages(steps->first, steps->touched);
	size_t pending = touch_steps_pending(steps);
	size_t pages = steps->window ? 2 * steps->window : WINDOW_FIRST;
	size_t left = (steps->nr_pages - steps->made) / steps->step;
	size_t phase = touch_phase(steps->nr_pages, steps->phase, steps->down);

	/* Half, so that the next one fits in while the program passes this one. */
	if (pages > allowed / 2)
		pages = allowed / 2;
	if (pages > WINDOW_MOST)
		pages = WINDOW_MOST;
	if (pages > left)
		pages = left;
	if (pending + pages > allowed || pages < WINDOW_FIRST / 2)
		return false;
	*window = (struct touch_window){
		.start = steps->made,
		.end = steps->made + pages * steps->step,
		.before = (steps->made + phase) % AHEAD_BLOCK_PAGES,
		.mark = AHEAD_NOWHERE,
		.filled = AHEAD_NOWHERE,
		.strip = steps->made + pages / MARK_PART * steps->step,
		.step = steps->step,
		.down = steps->down,
	};
	steps->mark = window->strip;
	steps->made = window->end;
	steps->window = pages;
	return true;
}
