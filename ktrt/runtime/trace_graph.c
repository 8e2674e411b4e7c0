/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Finds tasks and their dependences in the events of a trace.  This repeats what
 * dependences.c does while tasks are made, because a trace needs every edge, and not
 * only those for which a task still had to wait.
 *
 * Records of tasks are used again, so an address stands for the task that was last made
 * or begun there.
 *
 * Behaves badly with very many data of one parent: they are in a sorted array.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* Tasks that use data in one way. */
struct users {
	uint32_t *ids;
	size_t nr, capacity;
};

/* Part of what the children of a task use, as segments in ranges.c are. */
struct part {
	uint32_t parent;
	uint64_t start, end;
	unsigned mode; /* of the last ones, whom others may join */
	struct users last, before;
};

/* Where a task was last seen. */
struct address_entry {
	uint64_t addr; /* 0: free */
	uint32_t id;
};

struct finder {
	struct trace_graph *graph;
	struct address_entry *addresses;
	size_t nr_addresses, capacity; /* a power of two */
	struct part *parts;
	size_t nr_parts, parts_capacity;
	bool short_of_memory;
};

#define ADDRESSES_MIN 1024

/* ---- memory ---- */

static void *grow_array(struct finder *finder, void *array, size_t nr,
			size_t *capacity, size_t bytes)
{
	size_t more = *capacity ? *capacity * 2 : 16;
	void *renewed;

	if (nr < *capacity)
		return array;
	renewed = realloc(array, more * bytes);
	if (!renewed) {
		finder->short_of_memory = true;
		return NULL;
	}
	*capacity = more;
	return renewed;
}

static void add_user(struct finder *finder, struct users *users, uint32_t id)
{
	uint32_t *ids = grow_array(finder, users->ids, users->nr,
				   &users->capacity, sizeof(*ids));

	if (!ids)
		return;
	users->ids = ids;
	users->ids[users->nr++] = id;
}

static void copy_users(struct finder *finder, struct users *to,
		       const struct users *from)
{
	memset(to, 0, sizeof(*to));
	for (size_t i = 0; i < from->nr; i++)
		add_user(finder, to, from->ids[i]);
}

static void add_edge(struct finder *finder, uint32_t before, uint32_t after,
		     bool weak)
{
	struct trace_graph *graph = finder->graph;
	struct trace_edge *edges;

	/* Mostly another datum of the task has the same edge. */
	for (size_t i = graph->nr_edges;
	     i && graph->edges[i - 1].after == after; i--)
		if (graph->edges[i - 1].before == before) {
			graph->edges[i - 1].weak &= weak;
			return;
		}
	edges = grow_array(finder, graph->edges, graph->nr_edges,
			   &graph->edges_capacity, sizeof(*edges));
	if (!edges)
		return;
	graph->edges = edges;
	edges[graph->nr_edges++] = (struct trace_edge){ before, after, weak };
}

/* ---- tasks by their records ---- */

static struct address_entry *find_address(const struct finder *finder,
					  uint64_t addr)
{
	size_t at = (size_t)(addr * 0x9e3779b97f4a7c15u >> 32);

	for (at &= finder->capacity - 1;
	     finder->addresses[at].addr && finder->addresses[at].addr != addr;)
		at = (at + 1) & (finder->capacity - 1);
	return &finder->addresses[at];
}

static bool grow_addresses(struct finder *finder)
{
	struct address_entry *old = finder->addresses;
	size_t nr = finder->capacity;
	struct address_entry *addresses =
		calloc(nr ? nr * 2 : ADDRESSES_MIN, sizeof(*addresses));

	if (!addresses) {
		finder->short_of_memory = true;
		return false;
	}
	finder->addresses = addresses;
	finder->capacity = nr ? nr * 2 : ADDRESSES_MIN;
	for (size_t i = 0; i < nr; i++)
		if (old[i].addr)
			*find_address(finder, old[i].addr) = old[i];
	free(old);
	return true;
}

static uint32_t id_at(const struct finder *finder, uint64_t addr)
{
	return finder->capacity ? find_address(finder, addr)->id : 0;
}

static struct trace_task *task_of(const struct finder *finder, uint32_t id)
{
	return id ? &finder->graph->tasks[id - 1] : NULL;
}

static struct trace_task *add_task(struct finder *finder, uint64_t addr)
{
	struct trace_graph *graph = finder->graph;
	struct trace_task *tasks =
		grow_array(finder, graph->tasks, graph->nr_tasks,
			   &graph->tasks_capacity, sizeof(*tasks));
	struct trace_task *task;
	struct address_entry *entry;

	if (tasks)
		graph->tasks = tasks;
	if (!tasks || (finder->nr_addresses * 2 >= finder->capacity &&
		       !grow_addresses(finder)))
		return NULL;
	entry = find_address(finder, addr);
	finder->nr_addresses += !entry->addr;
	task = &tasks[graph->nr_tasks++];
	memset(task, 0, sizeof(*task));
	task->id = (uint32_t)graph->nr_tasks;
	*entry = (struct address_entry){ addr, task->id };
	return task;
}

/* ---- data ---- */

/* The first part of the parent's that ends behind @at, or where it would be. */
static size_t find_part(const struct finder *finder, uint32_t parent,
			uint64_t at)
{
	size_t low = 0, high = finder->nr_parts;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct part *part = &finder->parts[middle];

		if (part->parent < parent ||
		    (part->parent == parent && part->end <= at))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool insert_part(struct finder *finder, size_t at, uint32_t parent,
			uint64_t start, uint64_t end)
{
	struct part *parts =
		grow_array(finder, finder->parts, finder->nr_parts,
			   &finder->parts_capacity, sizeof(*parts));

	if (!parts)
		return false;
	finder->parts = parts;
	memmove(&parts[at + 1], &parts[at],
		(finder->nr_parts - at) * sizeof(*parts));
	finder->nr_parts++;
	memset(&parts[at], 0, sizeof(*parts));
	parts[at].parent = parent;
	parts[at].start = start;
	parts[at].end = end;
	return true;
}

/* Cut the part that contains @at in two. */
static void cut_part(struct finder *finder, uint32_t parent, uint64_t at)
{
	size_t left = find_part(finder, parent, at);
	struct part *part = &finder->parts[left];

	if (left == finder->nr_parts || part->parent != parent ||
	    part->start >= at)
		return;
	if (!insert_part(finder, left + 1, parent, at, part->end))
		return;
	part = &finder->parts[left];
	part->end = at;
	part[1].mode = part->mode;
	copy_users(finder, &part[1].last, &part->last);
	copy_users(finder, &part[1].before, &part->before);
}

/* As chain_enter() in dependences.c. */
static void use_part(struct finder *finder, struct part *part, uint32_t id,
		     unsigned mode, bool weak)
{
	bool joins = part->mode == mode && (mode | KTRT_IN) != KTRT_INOUT;
	struct users free_ones;

	if (part->last.nr && part->last.ids[part->last.nr - 1] == id)
		return;
	if (!joins) {
		free_ones = part->before;
		part->before = part->last;
		part->last = free_ones;
		part->last.nr = 0;
		part->mode = mode;
	}
	for (size_t i = 0; i < part->before.nr; i++)
		add_edge(finder, part->before.ids[i], id, weak);
	add_user(finder, &part->last, id);
}

static void use_datum(struct finder *finder, const struct trace_event *event)
{
	uint32_t id = id_at(finder, event->c);
	const struct trace_task *task = task_of(finder, id);
	uint64_t at = event->a, end = at + (event->b ? event->b : 1);
	uint32_t parent = task ? task->parent : 0;

	if (!task)
		return;
	cut_part(finder, parent, at);
	cut_part(finder, parent, end);
	while (at < end && !finder->short_of_memory) {
		size_t found = find_part(finder, parent, at);
		const struct part *part = &finder->parts[found];
		bool here = found < finder->nr_parts && part->parent == parent;

		/* A gap between two parts, or there is no part yet. */
		if (!here || part->start > at)
			if (!insert_part(finder, found, parent, at,
					 here && part->start < end ? part->start
								   : end))
				return;
		at = finder->parts[found].end;
		use_part(finder, &finder->parts[found], id,
			 event->small & ~(unsigned)KTRT_WEAK,
			 event->small & KTRT_WEAK);
	}
}

/* ---- events ---- */

static void see_made(struct finder *finder, const struct trace_event *event)
{
	uint32_t parent = id_at(finder, event->b);
	struct trace_task *task = add_task(finder, event->a);

	if (!task)
		return;
	task->parent = parent;
	task->func = event->c;
}

static void see_begin(struct finder *finder, const struct trace_event *event)
{
	struct trace_task *task = task_of(finder, id_at(finder, event->a));

	if (!task || task->begun) {
		see_made(finder, event);
		task = task_of(finder, id_at(finder, event->a));
	}
	if (!task)
		return;
	task->begun = true;
	task->func = event->c;
	task->begin_ns = event->ns;
	task->thread = event->thread;
	task->core = event->small;
}

static void see_end(const struct finder *finder,
		    const struct trace_event *event)
{
	struct trace_task *task = task_of(finder, id_at(finder, event->a));

	if (!task)
		return;
	task->end_ns = event->ns;
	task->cpu_ns = event->b;
	task->code = event->c;
}

static void take_event(struct finder *finder, const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_MADE:
		see_made(finder, event);
		break;
	case TRACE_DEP:
		use_datum(finder, event);
		break;
	case TRACE_BEGIN:
		see_begin(finder, event);
		break;
	case TRACE_END:
		see_end(finder, event);
		break;
	}
}

/* Take the edges of a run, once all of its nodes are known. */
static size_t take_edges(struct finder *finder,
			 const struct trace_event *events, size_t from,
			 size_t nr)
{
	size_t i = from;

	for (; i < nr && events[i].kind == TRACE_EDGE; i++)
		add_edge(finder, id_at(finder, events[i].a),
			 id_at(finder, events[i].b), false);
	return i;
}

int trace_graph_make(struct trace_graph *graph,
		     const struct trace_event *events, size_t nr)
{
	struct finder finder = { .graph = graph };

	for (size_t i = 0; i < nr && !finder.short_of_memory;) {
		if (events[i].kind == TRACE_EDGE) {
			i = take_edges(&finder, events, i, nr);
			continue;
		}
		take_event(&finder, &events[i++]);
	}
	for (size_t i = 0; i < finder.nr_parts; i++) {
		free(finder.parts[i].last.ids);
		free(finder.parts[i].before.ids);
	}
	free(finder.parts);
	free(finder.addresses);
	return finder.short_of_memory ? -ENOMEM : 0;
}

void trace_graph_free(struct trace_graph *graph)
{
	free(graph->tasks);
	free(graph->edges);
}
