/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See events.h: a heap. */
#include <stdlib.h>

#include "sim/events.h"

static struct {
	struct event *events;
	unsigned nr, capacity;
	uint64_t order;
} event_heap;

void events_reset(void)
{
	event_heap.nr = 0;
	event_heap.order = 0;
}

uint64_t events_next_ns(void)
{
	return event_heap.nr ? event_heap.events[0].ns : UINT64_MAX;
}

static bool is_earlier(const struct event *a, const struct event *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->order < b->order;
}

static void swap_events(unsigned a, unsigned b)
{
	struct event event = event_heap.events[a];

	event_heap.events[a] = event_heap.events[b];
	event_heap.events[b] = event;
}

void events_push(const struct event *event)
{
	unsigned i = event_heap.nr++;

	if (i == event_heap.capacity) {
		event_heap.capacity =
			event_heap.capacity ? event_heap.capacity * 2 : 64;
		event_heap.events = realloc(event_heap.events,
					    event_heap.capacity *
						    sizeof(*event_heap.events));
		if (!event_heap.events)
			abort();
	}
	event_heap.events[i] = *event;
	event_heap.events[i].order = event_heap.order++;
	for (; i && is_earlier(&event_heap.events[i],
			       &event_heap.events[(i - 1) / 2]);
	     i = (i - 1) / 2)
		swap_events(i, (i - 1) / 2);
}

struct event events_pop(void)
{
	struct event first = event_heap.events[0];
	unsigned i = 0;

	event_heap.events[0] = event_heap.events[--event_heap.nr];
	for (;;) {
		unsigned least = i, left = 2 * i + 1;

		for (unsigned child = left;
		     child < left + 2 && child < event_heap.nr; child++)
			if (is_earlier(&event_heap.events[child],
				       &event_heap.events[least]))
				least = child;
		if (least == i)
			return first;
		swap_events(i, least);
		i = least;
	}
}
