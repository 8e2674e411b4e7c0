/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Edges of graphs, and finding them by data.  A writer comes after all readers since the
 * last writer, or after that writer if there are no such readers.  A reader comes after
 * the last writer.  Does not own what runs do with edges (task_graph.c).
 *
 * Behaves badly with data that many nodes read between two writers: each reader has an
 * edge to the writer.
 */
#include <errno.h>
#include <stdlib.h>

#include "task_graph.h"

#define EDGES_MIN 128
#define DATA_MIN 64

/* ---- edges ---- */

static bool reserve_edge(struct ktrt_graph *graph)
{
	size_t capacity =
		graph->edges_capacity ? graph->edges_capacity * 2 : EDGES_MIN;
	struct edge *edges;

	if (graph->nr_edges < graph->edges_capacity)
		return true;
	edges = realloc(graph->edges, capacity * sizeof(*edges));
	if (!edges)
		return false;
	graph->edges = edges;
	graph->edges_capacity = capacity;
	return true;
}

/* It is there, and mostly one of the last. */
static void strengthen_edge(struct ktrt_graph *graph, uint32_t before,
			    uint32_t after, uint32_t kind)
{
	size_t i = graph->nr_edges;

	while (i-- && (graph->edges[i].before != before ||
		       graph->edges[i].after != after))
		;
	/* If two edges differ, one orders the nodes and the other passes failures on. */
	if (graph->edges[i].kind == kind || graph->edges[i].kind == EDGE_NEEDS)
		return;
	graph->edges[i].kind = EDGE_NEEDS;
	graph->settled = false;
}

void graph_add_edge(struct ktrt_graph *graph, uint32_t before, uint32_t after,
		    uint32_t kind)
{
	struct ktrt_task *first = graph->nodes[before];

	/* Another datum has the same edge already.  Before a graph is settled, a node
	 * knows the last node that waits for it. */
	if (first->arrow == after) {
		strengthen_edge(graph, before, after, kind);
		return;
	}
	if (!reserve_edge(graph)) {
		graph->error = -ENOMEM;
		return;
	}
	graph->edges[graph->nr_edges++] = (struct edge){ before, after, kind };
	first->arrow = after;
	graph->settled = false;
}

/* ---- data ---- */

static struct datum *find_datum(struct ktrt_graph *graph, const void *addr)
{
	uint64_t mixed = (uintptr_t)addr * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(mixed >> 32) & (graph->capacity - 1);

	while (graph->data[at].used && graph->data[at].addr != addr)
		at = (at + 1) & (graph->capacity - 1);
	return &graph->data[at];
}

static bool double_data(struct ktrt_graph *graph)
{
	struct datum *old = graph->data;
	size_t nr = graph->capacity;
	struct datum *data = calloc(nr ? nr * 2 : DATA_MIN, sizeof(*data));

	if (!data)
		return false;
	graph->data = data;
	graph->capacity = nr ? nr * 2 : DATA_MIN;
	for (size_t i = 0; i < nr; i++)
		if (old[i].used)
			*find_datum(graph, old[i].addr) = old[i];
	free(old);
	return true;
}

static struct datum *datum_of(struct ktrt_graph *graph, const void *addr)
{
	struct datum *datum;

	if (graph->nr_data * 2 >= graph->capacity && !double_data(graph))
		return NULL;
	datum = find_datum(graph, addr);
	if (!datum->used) {
		datum->used = true;
		datum->addr = addr;
		graph->nr_data++;
	}
	return datum;
}

static bool add_reader(struct datum *datum, uint32_t node)
{
	uint32_t capacity = datum->capacity ? datum->capacity * 2 : 4;
	uint32_t *readers;

	if (datum->nr_readers == datum->capacity) {
		readers = realloc(datum->readers, capacity * sizeof(*readers));
		if (!readers)
			return false;
		datum->readers = readers;
		datum->capacity = capacity;
	}
	datum->readers[datum->nr_readers++] = node;
	return true;
}

/*
 * A writer comes after all readers since the last writer, or else after that writer.  If
 * the node also reads, only a failure of the last writer spoils the datum for it: the
 * readers in between may be skipped for another reason.
 */
static void write_datum(struct ktrt_graph *graph, struct datum *datum,
			uint32_t node, bool reads)
{
	if (datum->writer == node + 1)
		return;
	for (uint32_t i = 0; i < datum->nr_readers; i++)
		graph_add_edge(graph, datum->readers[i], node, EDGE_ORDERS);
	if (datum->writer && !datum->nr_readers)
		graph_add_edge(graph, datum->writer - 1, node,
			       reads ? EDGE_NEEDS : EDGE_ORDERS);
	else if (datum->writer && reads)
		graph_add_edge(graph, datum->writer - 1, node, EDGE_SPOILS);
	datum->nr_readers = 0;
	datum->writer = node + 1;
}

static void read_datum(struct ktrt_graph *graph, struct datum *datum,
		       uint32_t node)
{
	uint32_t nr = datum->nr_readers;

	/* Named twice. */
	if (datum->writer == node + 1 || (nr && datum->readers[nr - 1] == node))
		return;
	if (datum->writer)
		graph_add_edge(graph, datum->writer - 1, node, EDGE_NEEDS);
	if (!add_reader(datum, node))
		graph->error = -ENOMEM;
}

/* Writers first, so that nothing is lost where a datum is named twice. */
void graph_add_edges(struct ktrt_graph *graph, uint32_t node,
		     const struct ktrt_attr *attr)
{
	for (unsigned writes = 2; writes--;)
		for (size_t i = 0; i < attr->nr_deps; i++) {
			const struct ktrt_dep *dep = &attr->deps[i];
			struct datum *datum;

			if (writes == !(dep->mode & KTRT_OUT))
				continue;
			datum = datum_of(graph, dep->addr);
			if (!datum)
				graph->error = -ENOMEM;
			else if (writes)
				write_datum(graph, datum, node,
					    dep->mode & KTRT_IN);
			else
				read_datum(graph, datum, node);
		}
}

void graph_free_data(struct ktrt_graph *graph)
{
	for (size_t i = 0; i < graph->capacity; i++)
		free(graph->data[i].readers);
	free(graph->data);
}
