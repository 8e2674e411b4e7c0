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

#endif /* UMT_TEST_EVENTS_H */
