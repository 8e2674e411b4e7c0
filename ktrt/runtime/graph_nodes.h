/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What running a node of a graph does to the graph (task_graph.c).  Does not own graphs
 * (task_graph.h).
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_GRAPH_NODES_H
#define RUNTIME_GRAPH_NODES_H

#include "task_life.h"

#define NODES_FETCHED 4

/* It is about to begin: what waits for it is written when it ends, and may be in
 * another core's cache. */
static inline void graph_node_fetch(const struct ktrt_task *node)
{
	uint32_t nr =
		node->nr_after < NODES_FETCHED ? node->nr_after : NODES_FETCHED;

	for (uint32_t i = 0; i < nr; i++)
		fetch_to_write(node->after[i]);
}

/* The thread that brings the number to 0 owns the node until the next run. */
static inline bool node_met(struct ktrt_task *node)
{
	if (at_load(&node->unmet) != 1 && at_sub(&node->unmet, 1) != 1)
		return false;
	at_poke(&node->unmet, node->nr_before);
	return true;
}

/* A node is complete: it makes others ready, one of which is put into *@next if
 * that is NULL.  true: nothing waits for it, so its run has one child less. */
static inline __attribute__((always_inline)) bool
node_complete(struct worker *w, struct ktrt_task *node, struct ktrt_task **next)
{
	struct ktrt_task **after = node->after;
	uint32_t nr = node->nr_after;

	for (uint32_t i = 0; i < nr; i++) {
		if (!node_met(after[i]))
			continue;
		if (w && !*next && !(after[i]->flags & TASK_NODE_QUEUE))
			*next = after[i];
		else
			task_ready(w, after[i]);
	}
	return !nr;
}

/* The same where it is seldom done. */
bool graph_node_complete(struct worker *w, struct ktrt_task *node,
			 struct ktrt_task **next);
/* Before that: it failed, so what needs it is skipped. */
void graph_node_failed(struct ktrt_task *node);
/* A run that its caller left is complete. */
void graph_run_complete(struct ktrt_task *run);

#endif /* RUNTIME_GRAPH_NODES_H */
