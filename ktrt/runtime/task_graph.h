/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a graph is, for task_graph.c, which runs it, and graph_edges.c, which
 * finds out what waits for what.
 */
#ifndef RUNTIME_TASK_GRAPH_H
#define RUNTIME_TASK_GRAPH_H

#include "rt.h"

/* A datum that nodes use: the last writer, and who has read it since. */
struct datum {
	const void *addr;
	bool used;
	uint32_t writer; /* its number and 1; 0: none */
	uint32_t nr_readers, room;
	uint32_t *readers;
};

/*
 * What failures do along an edge: nothing, as the next node only writes the
 * datum; they go on if the node before found it spoilt, as both use it, which
 * does it no harm; or always.
 */
enum { EDGE_ORDERS, EDGE_PASSES_ON, EDGE_NEEDS };

struct edge {
	uint32_t before, after;
	uint32_t kind;
};

struct ktrt_graph {
	uint32_t busy; /* it runs */
	uint32_t starts; /* rt.starts when it was made */
	int error; /* memory was too short for an edge */
	bool settled; /* the nodes know of the edges */
	struct ktrt_task *run;
	struct ktrt_task **nodes, **roots;
	size_t nr, room, nr_roots, nr_sinks;
	struct edge *edges;
	size_t nr_edges, room_edges;
	struct ktrt_task **after; /* of all nodes */
	uint8_t *kinds; /* of these edges */
	uint32_t spoilt; /* a node was, in this run */
	struct datum *data;
	size_t nr_data, capacity; /* a power of two, or 0 */
	struct block *blocks;
};

#define NO_NODE UINT32_MAX

/* Node @after waits for @before, for a reason that is one of EDGE_...; without
 * memory graph->error says so. */
void graph_add_edge(struct ktrt_graph *graph, uint32_t before, uint32_t after,
		    uint32_t kind);
/* The same by the data of the newest node. */
void graph_add_edges(struct ktrt_graph *graph, uint32_t node,
		     const struct ktrt_attr *attr);
void graph_free_data(struct ktrt_graph *graph);

#endif /* RUNTIME_TASK_GRAPH_H */
