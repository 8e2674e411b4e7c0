/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ranges of memory as data: segments that do not overlap, in order, each with
 * a chain of its own.  A range that cuts a segment in two splits its chain:
 * both parts go on with an epoch that has no members and is over when the one
 * before it is.
 *
 * Only the parent's thread looks at segments.  Behaves badly with very many
 * segments in use: inserting one moves those behind it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "deps.h"

struct segment {
	uintptr_t start, end;
	struct tail tail;
};

struct ranges {
	size_t nr, capacity;
	struct segment segments[];
};

/* The first segment that ends behind @at. */
static size_t find_segment(const struct ranges *ranges, uintptr_t at)
{
	size_t low = 0, high = ranges->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->segments[middle].end > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Forget segments that nobody uses any more. */
static void sweep_segments(struct worker *w, struct ranges *ranges)
{
	struct ready none;
	size_t kept = 0;

	ready_init(&none);
	for (size_t i = 0; i < ranges->nr; i++) {
		struct epoch *epoch = ranges->segments[i].tail.epoch;

		if (epoch && !epoch_is_over(epoch))
			ranges->segments[kept++] = ranges->segments[i];
		else if (epoch)
			epoch_put(w, epoch, &none);
	}
	ranges->nr = kept;
}

static int reserve_capacity(struct worker *w, struct ranges **at, size_t more)
{
	struct ranges *ranges = *at;
	size_t nr = 0, capacity;

	if (ranges) {
		if (ranges->nr + more <= ranges->capacity)
			return 0;
		sweep_segments(w, ranges);
		nr = ranges->nr;
		if ((nr + more) * 2 <= ranges->capacity)
			return 0;
	}
	capacity = (nr + more) * 4;
	ranges = realloc(ranges,
			 sizeof(*ranges) + capacity * sizeof(struct segment));
	if (!ranges)
		return -ENOMEM;
	ranges->nr = nr;
	ranges->capacity = capacity;
	*at = ranges;
	return 0;
}

/*
 * Each range is cut at two places, and has at most one gap more than there are
 * segments in it.
 */
int ranges_reserve(struct worker *w, struct ranges **ranges,
		   const struct ktrt_dep *deps, size_t nr)
{
	size_t more = 0;

	for (size_t i = 0; i < nr; i++) {
		uintptr_t start = (uintptr_t)deps[i].addr;

		if (!deps[i].len)
			continue;
		more += 4;
		if (*ranges)
			more += find_segment(*ranges, start + deps[i].len) -
				find_segment(*ranges, start);
	}
	return more ? reserve_capacity(w, ranges, more) : 0;
}

static void insert_segment(struct ranges *ranges, size_t index, uintptr_t start,
			   uintptr_t end, struct epoch *epoch)
{
	struct segment *segment = &ranges->segments[index];

	memmove(segment + 1, segment,
		(ranges->nr - index) * sizeof(struct segment));
	segment->start = start;
	segment->end = end;
	segment->tail.epoch = epoch;
	segment->tail.serial = 0;
	ranges->nr++;
}

/* An epoch without members that is over once it is started. */
static struct epoch *stand_in(struct worker *w)
{
	struct epoch *epoch = epoch_new(w, true);

	if (epoch)
		epoch->held = true;
	return epoch;
}

/* Two chains out of one; *@right is the second one's end. */
static int split_chain(struct worker *w, struct tail *left,
		       struct epoch **right)
{
	struct epoch *last = left->epoch;
	struct epoch *one, *two;
	struct ready none;

	*right = NULL;
	if (!last || epoch_is_over(last))
		return 0;
	one = stand_in(w);
	two = stand_in(w);
	if (!one || !two) {
		if (one)
			pool_put(&rt.smalls, &w->smalls, one);
		return -ENOMEM;
	}
	one->sibling = two;
	last->next = one;
	left->epoch = one;
	*right = two;
	ready_init(&none);
	epoch_put(w, last, &none);
	return 0;
}

static int cut_at(struct worker *w, struct ranges *ranges, uintptr_t at)
{
	size_t index = find_segment(ranges, at);
	struct segment *segment = &ranges->segments[index];
	uintptr_t end;
	struct epoch *right;

	if (index == ranges->nr || segment->start >= at)
		return 0;
	end = segment->end;
	if (split_chain(w, &segment->tail, &right))
		return -ENOMEM;
	segment->end = at;
	insert_segment(ranges, index + 1, at, end, right);
	return 0;
}

/* Segments of their own for what lies between others. */
static void fill_gaps(struct ranges *ranges, uintptr_t start, uintptr_t end)
{
	size_t index = find_segment(ranges, start);

	while (start < end) {
		uintptr_t gap_end = end;

		if (index < ranges->nr && ranges->segments[index].start < end)
			gap_end = ranges->segments[index].start;
		if (gap_end > start)
			insert_segment(ranges, index, start, gap_end, NULL);
		start = ranges->segments[index].end;
		index++;
	}
}

int ranges_cut(struct worker *w, struct ranges *ranges, uintptr_t start,
	       uintptr_t end)
{
	int error = cut_at(w, ranges, start);

	if (!error)
		error = cut_at(w, ranges, end);
	if (!error)
		fill_gaps(ranges, start, end);
	return error;
}

struct tail *ranges_next(struct ranges *ranges, uintptr_t *at)
{
	struct segment *segment = &ranges->segments[find_segment(ranges, *at)];

	*at = segment->end;
	return &segment->tail;
}

void ranges_free(struct worker *w, struct ranges *ranges)
{
	struct ready none;

	ready_init(&none);
	for (size_t i = 0; ranges && i < ranges->nr; i++)
		if (ranges->segments[i].tail.epoch)
			epoch_put(w, ranges->segments[i].tail.epoch, &none);
	free(ranges);
}
