/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a graph is, for task_graph.c, which runs it, and graph_edges.c, which finds its
 * edges.
 *
 * Locking: there is no lock.  A graph belongs to one thread at a time, as
 * ktrt_graph_run(3) says; while it runs, workers write fields that are A:
 *
 *	I: constant
 *	S: the thread that makes, settles, or runs it, and not while nodes are done
 *	A: any worker: by atomic operations
 *
 * Fields of a node (task_record.h) that are not A are S.  One exception: the worker that spoils a
 * node before it is ready changes its function.
 */
#ifndef RUNTIME_TASK_GRAPH_H
#define RUNTIME_TASK_GRAPH_H

#include "rt.h"

/* A datum that nodes use: the last writer, and who has read it since; S */
struct datum {
	const void *addr;
	bool used;
	uint32_t writer; /* its number and 1; 0: none */
	uint32_t nr_readers, capacity;
	uint32_t *readers;
};

/* What a failure does along an edge.  EDGE_ORDERS: nothing, because the first node only
 * reads the datum, or the second only writes it.  EDGE_NEEDS: it is passed on.
 * EDGE_SPOILS: the same, but no node waits for this edge, because a longer path exists. */
enum { EDGE_SPOILS, EDGE_ORDERS, EDGE_NEEDS };

struct edge {
	uint32_t before, after;
	uint32_t kind;
};

struct ktrt_graph {
	uint32_t busy; /* it runs; A */
	uint32_t starts; /* rt.starts when it was made; I */
	int error; /* memory was too short for an edge; S */
	bool settled; /* the nodes know of the edges; S */
	struct ktrt_task *run; /* I */
	struct ktrt_task **nodes, **roots; /* S */
	size_t nr, nodes_capacity, nr_roots, nr_sinks; /* S */
	struct edge *edges; /* S */
	size_t nr_edges, edges_capacity; /* S */
	struct ktrt_task **after; /* of all nodes; S */
	uint8_t *kinds; /* of these edges; S */
	uint32_t spoilt; /* a node was, in this run; A */
	struct datum *data; /* S */
	size_t nr_data, capacity; /* a power of two, or 0; S */
	struct block *blocks; /* S */
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
