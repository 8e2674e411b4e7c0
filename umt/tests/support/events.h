/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All events that a subscriber was told, in one list.
 */
#ifndef UMT_TEST_EVENTS_H
#define UMT_TEST_EVENTS_H

#include "subscribers.h"

#define EVENTS_MAX 20000

static struct umt_event seen_events[EVENTS_MAX];
static int nr_events;

/* What came since is put behind the rest. */
static inline void collect_more(struct umt *subscriber)
{
	while (nr_events < EVENTS_MAX &&
	       umt_next(subscriber, &seen_events[nr_events]) == 1)
		nr_events++;
	assert_true(nr_events < EVENTS_MAX);
	assert_int_equal(sums_of(subscriber).lost, 0);
}

/* The index of the first such event from index @from on, or -1. */
static inline int find_event(int from, uint32_t tid, int kind)
{
	for (int i = from; i < nr_events; i++)
		if (seen_events[i].tid == tid && seen_events[i].kind == kind)
			return i;
	return -1;
}

static inline int count_events(int from, uint32_t tid, int kind)
{
	int nr = 0;

	while ((from = find_event(from, tid, kind) + 1))
		nr++;
	return nr;
}

#endif /* UMT_TEST_EVENTS_H */
