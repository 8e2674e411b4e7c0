/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ranges of memory as data: a tree of segments that do not overlap, each with a chain of
 * its own.  A range that cuts a segment in two splits its chain.  Each part continues
 * with an epoch that has no members, and is over when the epoch before it is.
 *
 * The tree is a treap (Seidel and Aragon, "Randomized search trees", 1996): random
 * weights keep it flat whatever the order in which ranges are made.
 *
 * Locking: only the thread that does the parent's body uses segments: the B of
 * dependences.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "dependences.h"

struct segment {
	uintptr_t start, end;
	struct tail tail;
	struct segment *left, *right;
	uint32_t weight; /* not above the parent's */
};

struct ranges {
	struct segment *root;
	size_t nr;
	size_t sweep_at; /* sweep once there are so many segments */
	uint32_t random;
	uint64_t steps; /* segments that were visited, for a test */
};

/* The pool of epochs has records of this size. */
_Static_assert(sizeof(struct segment) <= 64, "a segment is a small record");

#define SWEEP_LEAST 64

/* ---- the tree ---- */

/* The first segment that ends after @at, or NULL. */
static struct segment *find_segment(struct ranges *ranges, uintptr_t at)
{
	struct segment *segment = ranges->root, *found = NULL;

	for (; segment; ranges->steps++) {
		if (segment->end > at) {
			found = segment;
			segment = segment->left;
		} else {
			segment = segment->right;
		}
	}
	return found;
}

/* Split the tree into segments that begin before @at, and all others. */
static void split_tree(struct ranges *ranges, struct segment *tree,
		       uintptr_t at, struct segment **before,
		       struct segment **rest)
{
	for (; tree; ranges->steps++) {
		if (tree->start < at) {
			*before = tree;
			before = &tree->right;
			tree = tree->right;
		} else {
			*rest = tree;
			rest = &tree->left;
			tree = tree->left;
		}
	}
	*before = *rest = NULL;
}

static void insert_segment(struct ranges *ranges, struct segment *segment)
{
	struct segment **at = &ranges->root;

	for (; *at && (*at)->weight >= segment->weight; ranges->steps++)
		at = segment->start < (*at)->start ? &(*at)->left
						   : &(*at)->right;
	split_tree(ranges, *at, segment->start, &segment->left,
		   &segment->right);
	*at = segment;
	ranges->nr++;
}

static struct segment *new_segment(struct worker *w, struct ranges *ranges,
				   uintptr_t start, uintptr_t end)
{
	struct segment *segment = pool_get(&rt.smalls, &w->smalls);

	if (!segment)
		return NULL;
	segment->start = start;
	segment->end = end;
	segment->tail.epoch = NULL;
	segment->tail.serial = 0;
	/* Marsaglia's xorshift */
	ranges->random ^= ranges->random << 13;
	ranges->random ^= ranges->random >> 17;
	ranges->random ^= ranges->random << 5;
	segment->weight = ranges->random;
	return segment;
}

/* Take all segments out, in order, linked by ->right. */
static struct segment *take_all(struct ranges *ranges)
{
	struct segment **at = &ranges->root, *all;

	while (*at) {
		struct segment *left = (*at)->left;

		if (!left) {
			at = &(*at)->right;
			continue;
		}
		(*at)->left = left->right;
		left->right = *at;
		*at = left;
	}
	all = ranges->root;
	ranges->root = NULL;
	ranges->nr = 0;
	return all;
}

static void free_segment(struct worker *w, struct segment *segment)
{
	struct ready none;

	ready_init(&none);
	if (segment->tail.epoch)
		epoch_put(w, segment->tail.epoch, &none);
	pool_put(&rt.smalls, w ? &w->smalls : NULL, segment);
}

/* Free segments whose chains may be forgotten. */
static void sweep_segments(struct worker *w, struct ranges *ranges,
			   uint64_t forgiven)
{
	struct segment *segment = take_all(ranges), *next;

	for (; segment; segment = next) {
		next = segment->right;
		if (tail_is_dead(&segment->tail, forgiven))
			free_segment(w, segment);
		else
			insert_segment(ranges, segment);
	}
	ranges->sweep_at = ranges->nr * 2 + SWEEP_LEAST;
}

/* ---- cutting ---- */

/* An epoch without members, which is over as soon as it is started. */
static struct epoch *stand_in(struct worker *w)
{
	return epoch_new(w, KTRT_INOUT | EPOCH_HELD);
}

/* Split a chain in two.  *@right is set to the last epoch of the second one. */
static int split_chain(struct worker *w, struct tail *left,
		       struct epoch **right)
{
	struct epoch *last = left->epoch;
	struct epoch *one, *two;
	struct ready none;

	*right = NULL;
	if (!last || (epoch_is_over(last) && !(last->kind & EPOCH_LEAVES)))
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
	struct segment *segment = find_segment(ranges, at), *right;

	if (!segment || segment->start >= at)
		return 0;
	right = new_segment(w, ranges, at, segment->end);
	if (!right)
		return -ENOMEM;
	if (split_chain(w, &segment->tail, &right->tail.epoch)) {
		pool_put(&rt.smalls, &w->smalls, right);
		return -ENOMEM;
	}
	segment->end = at;
	right->tail.serial = segment->tail.serial;
	insert_segment(ranges, right);
	return 0;
}

/* Make segments for the parts of a range that have none. */
static int fill_gaps(struct worker *w, struct ranges *ranges, uintptr_t start,
		     uintptr_t end)
{
	while (start < end) {
		struct segment *next = find_segment(ranges, start), *gap;
		uintptr_t gap_end =
			next && next->start < end ? next->start : end;

		if (gap_end > start) {
			gap = new_segment(w, ranges, start, gap_end);
			if (!gap)
				return -ENOMEM;
			insert_segment(ranges, gap);
		}
		start = next && next->start < end ? next->end : end;
	}
	return 0;
}

/* ---- for dependences.c ---- */

struct ranges *ranges_new(void)
{
	struct ranges *ranges = calloc(1, sizeof(*ranges));

	if (!ranges)
		return NULL;
	ranges->random = 1;
	ranges->sweep_at = SWEEP_LEAST;
	return ranges;
}

void ranges_tidy(struct worker *w, struct ranges *ranges, uint64_t forgiven)
{
	if (ranges->nr >= ranges->sweep_at)
		sweep_segments(w, ranges, forgiven);
}

static void each_below(struct segment *tree, tail_func func,
		       const struct domain *domain)
{
	for (; tree; tree = tree->right) {
		each_below(tree->left, func, domain);
		func(&tree->tail, domain);
	}
}

void ranges_each(struct ranges *ranges, tail_func func,
		 const struct domain *domain)
{
	each_below(ranges->root, func, domain);
}

int ranges_cut(struct worker *w, struct ranges *ranges, uintptr_t start,
	       uintptr_t end)
{
	int error = cut_at(w, ranges, start);

	if (!error)
		error = cut_at(w, ranges, end);
	return error ? error : fill_gaps(w, ranges, start, end);
}

struct tail *ranges_next(struct ranges *ranges, uintptr_t *at)
{
	struct segment *segment = find_segment(ranges, *at);

	*at = segment->end;
	return &segment->tail;
}

struct tail *ranges_at(struct ranges *ranges, uintptr_t at)
{
	struct segment *segment = find_segment(ranges, at);

	return segment && segment->start <= at ? &segment->tail : NULL;
}

uint64_t ranges_steps(const struct ranges *ranges)
{
	return ranges->steps;
}

void ranges_free(struct worker *w, struct ranges *ranges)
{
	struct segment *segment = ranges ? take_all(ranges) : NULL, *next;

	for (; segment; segment = next) {
		next = segment->right;
		free_segment(w, segment);
	}
	free(ranges);
}
