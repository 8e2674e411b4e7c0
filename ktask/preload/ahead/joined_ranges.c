/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See joined_ranges.h. */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "preload/ahead/joined_ranges.h"

#define NR_RANGES 32

/* An empty one has start == end.  Owned by the holder of in_use. */
static struct range {
	uintptr_t start, end;
} range_table[NR_RANGES];
static unsigned next_dropped;
static atomic_flag in_use = ATOMIC_FLAG_INIT;
/* Without it most programs would read the table for nothing; A. */
static atomic_bool has_any;
/* Unmapped memory may still be in the table; A. */
static atomic_bool has_missed;

static bool take_table(void)
{
	if (atomic_flag_test_and_set(&in_use))
		return false;
	/* Better no range than a wrong one. */
	if (atomic_exchange(&has_missed, false))
		memset(range_table, 0, sizeof(range_table));
	return true;
}

static void leave_table(void)
{
	atomic_flag_clear(&in_use);
}

static bool is_beside(const struct range *range, uintptr_t start, uintptr_t end)
{
	return range->start < range->end && range->start <= end &&
	       start <= range->end;
}

/* The new range takes in all that it meets. */
static void put_range(uintptr_t start, uintptr_t end)
{
	struct range *target = NULL;

	for (size_t i = 0; i < NR_RANGES; i++) {
		struct range *range = &range_table[i];

		if (is_beside(range, start, end)) {
			start = range->start < start ? range->start : start;
			end = range->end > end ? range->end : end;
			*range = (struct range){ 0 };
		}
		if (range->start == range->end && !target)
			target = range;
	}
	if (!target)
		target = &range_table[next_dropped++ % NR_RANGES];
	*target = (struct range){ start, end };
	atomic_store(&has_any, true);
}

void joined_ranges_add(uintptr_t start, uintptr_t end)
{
	if (start >= end || !take_table())
		return;
	put_range(start, end);
	leave_table();
}

/* Not if a part remains on both sides. */
static void trim_range(struct range *range, uintptr_t start, uintptr_t end)
{
	if (start <= range->start && range->end <= end)
		*range = (struct range){ 0 };
	else if (start <= range->start && range->start < end)
		range->start = end;
	else if (start < range->end && range->end <= end)
		range->end = start;
}

static bool take_to_drop(void)
{
	if (!atomic_load(&has_any))
		return false;
	if (take_table())
		return true;
	atomic_store(&has_missed, true);
	return false;
}

void joined_ranges_drop(uintptr_t start, uintptr_t end)
{
	if (!take_to_drop())
		return;
	for (size_t i = 0; i < NR_RANGES; i++)
		trim_range(&range_table[i], start, end);
	leave_table();
}

void joined_ranges_cut(uintptr_t start, uintptr_t end)
{
	if (start >= end || !take_to_drop())
		return;
	for (size_t i = 0; i < NR_RANGES; i++) {
		struct range *range = &range_table[i];
		uintptr_t range_end = range->end;

		if (range->start < start && end < range_end) {
			range->end = start;
			put_range(end, range_end);
			break;
		}
		trim_range(range, start, end);
	}
	leave_table();
}

bool joined_ranges_next(uintptr_t *at, uintptr_t end, uintptr_t *to)
{
	uintptr_t first = end;

	*to = end;
	if (!atomic_load(&has_any) || !take_table())
		return false;
	for (size_t i = 0; i < NR_RANGES; i++) {
		const struct range *range = &range_table[i];
		uintptr_t start = range->start > *at ? range->start : *at;

		if (start >= range->end || start >= first)
			continue;
		first = start;
		*to = range->end < end ? range->end : end;
	}
	leave_table();
	*at = first;
	return first < end;
}

bool joined_ranges_touch(uintptr_t start, uintptr_t end)
{
	bool touch = false;

	if (!atomic_load(&has_any) || !take_table())
		return false;
	for (size_t i = 0; i < NR_RANGES && !touch; i++)
		touch = is_beside(&range_table[i], start, end);
	leave_table();
	return touch;
}

void joined_ranges_forked(void)
{
	leave_table();
}
