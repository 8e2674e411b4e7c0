/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See events.h: a heap. */
#include <stdlib.h>

#include "sim/events.h"

static struct {
	struct event *events;
	unsigned nr, capacity;
	uint64_t order;
} heap;

void events_reset(void)
{
	heap.nr = 0;
	heap.order = 0;
}

uint64_t events_next_ns(void)
{
	return heap.nr ? heap.events[0].ns : UINT64_MAX;
}

static bool earlier(const struct event *a, const struct event *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->order < b->order;
}

static void swap_events(unsigned a, unsigned b)
{
	struct event event = heap.events[a];

	heap.events[a] = heap.events[b];
	heap.events[b] = event;
}

void events_push(const struct event *event)
{
	unsigned i = heap.nr++;

	if (i == heap.capacity) {
		heap.capacity = heap.capacity ? heap.capacity * 2 : 64;
		heap.events = realloc(heap.events,
				      heap.capacity * sizeof(*heap.events));
		if (!heap.events)
			abort();
	}
	heap.events[i] = *event;
	heap.events[i].order = heap.order++;
	for (; i && earlier(&heap.events[i], &heap.events[(i - 1) / 2]);
	     i = (i - 1) / 2)
		swap_events(i, (i - 1) / 2);
}

struct event events_pop(void)
{
	struct event first = heap.events[0];
	unsigned i = 0;

	heap.events[0] = heap.events[--heap.nr];
	for (;;) {
		unsigned least = i, left = 2 * i + 1;

		for (unsigned child = left; child < left + 2 && child < heap.nr;
		     child++)
			if (earlier(&heap.events[child], &heap.events[least]))
				least = child;
		if (least == i)
			return first;
		swap_events(i, least);
		i = least;
	}
}
