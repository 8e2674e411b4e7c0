/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Graphs that are made once and run often.
 *
 * A node is a record that is kept.  It has a list of the nodes that wait for it, and the
 * number of nodes for which it waits.  The last of those to complete resets the number
 * for the next run and makes the node ready.  So a run searches and allocates nothing.
 * It touches a node only in its turn, and only one cache line: a record at hand does
 * what the node says (task_run.c).
 *
 * A run is a task inside the one that asked for it, and the parent of the nodes.  Only
 * nodes for which no node waits (sinks) count as its children: all others are complete
 * before the last sink is.
 *
 * Owns nodes and runs; graph_edges.c finds edges.  Records belong to the runtime's pool,
 * because thieves may read a record that was freed, so they end with the runtime.
 * Everything else is freed with the graph.
 *
 * Locking: task_graph.h.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "func_kinds.h"
#include "task_graph.h"
#include "trace.h"

/* Memory of nodes that is freed with the graph. */
struct block {
	struct block *next;
	_Alignas(16) char bytes[];
};

#define NODES_MIN 64

/* ---- memory ---- */

static void *block_new(struct ktrt_graph *graph, size_t bytes)
{
	struct block *block = bytes <= SIZE_MAX - sizeof(*block)
				      ? malloc(sizeof(*block) + bytes)
				      : NULL;

	if (!block)
		return NULL;
	block->next = graph->blocks;
	graph->blocks = block;
	return block->bytes;
}

/* Does the runtime still run in which the graph was made, so that its records exist? */
static bool graph_lives(const struct ktrt_graph *graph)
{
	return rt_runs() && graph->starts == at_load(&rt.starts);
}

int ktrt_graph_new(struct ktrt_graph **graph)
{
	struct worker *w = current_worker();
	struct ktrt_graph *made;

	if (!graph)
		return -EINVAL;
	*graph = NULL;
	if (!w)
		return -ESRCH;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->starts = rt.starts;
	made->run = task_new(w, NULL, NULL);
	if (!made->run) {
		free(made);
		return -ENOMEM;
	}
	made->run->flags = TASK_RUN;
	made->run->graph = made;
	*graph = made;
	return 0;
}

/* Give the records back to the pool of tasks. */
static void free_records(struct ktrt_graph *graph)
{
	struct worker *w = current_worker();

	for (size_t i = 0; i < graph->nr; i++)
		pool_put(&rt.tasks, w ? &w->tasks : NULL, graph->nodes[i]);
	pool_put(&rt.tasks, w ? &w->tasks : NULL, graph->run);
}

void ktrt_graph_free(struct ktrt_graph *graph)
{
	struct block *block, *next;

	if (!graph)
		return;
	if (graph_lives(graph)) {
		/* The graph is running. */
		if (at_load(&graph->busy))
			return;
		free_records(graph);
	}
	for (block = graph->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	graph_free_data(graph);
	free(graph->nodes);
	free(graph->roots);
	free(graph->edges);
	free(graph->after);
	free(graph->kinds);
	free(graph);
}

/* ---- nodes ---- */

static bool attr_suits_node(const struct ktrt_attr *attr)
{
	if (attr->group || attr->move || attr->flags & ~KTRT_ALWAYS)
		return false;
	for (size_t i = 0; i < attr->nr_deps; i++)
		if (attr->deps[i].len || attr->deps[i].mode > KTRT_COMMUTATIVE)
			return false;
	return true;
}

static bool reserve_node(struct ktrt_graph *graph)
{
	size_t capacity =
		graph->nodes_capacity ? graph->nodes_capacity * 2 : NODES_MIN;
	struct ktrt_task **nodes;

	if (graph->nr < graph->nodes_capacity)
		return true;
	nodes = realloc(graph->nodes, capacity * sizeof(struct ktrt_task *));
	if (!nodes)
		return false;
	graph->nodes = nodes;
	graph->nodes_capacity = capacity;
	return true;
}

static int copy_for_node(struct ktrt_graph *graph, struct ktrt_task *node,
			 const void *arg, size_t bytes)
{
	node->arg = bytes <= ARG_INLINE ? node->arg_inline
					: block_new(graph, bytes);
	if (!node->arg)
		return -ENOMEM;
	memcpy(node->arg, arg, bytes);
	return 0;
}

static int add_node(struct ktrt_graph *graph, ktrt_func func, void *arg,
		    const struct ktrt_attr *attr)
{
	struct worker *w = current_worker();
	struct ktrt_task *node = NULL;

	if (reserve_node(graph))
		node = pool_get(&rt.tasks, &w->tasks);
	if (!node)
		return -ENOMEM;
	task_renew(node, graph->run, func, arg);
	node->flags = TASK_NODE;
	node->arrow = NO_NODE;
	task_take_attr(node, attr);
	if (attr->arg_bytes &&
	    copy_for_node(graph, node, arg, attr->arg_bytes)) {
		pool_put(&rt.tasks, &w->tasks, node);
		return -ENOMEM;
	}
	graph->nodes[graph->nr++] = node;
	graph->settled = false;
	return 0;
}

int ktrt_graph_add(struct ktrt_graph *graph, ktrt_func func, void *arg,
		   const struct ktrt_attr *attr)
{
	struct ktrt_attr own = KTRT_ATTR_INIT;
	int error = attr ? task_read_attr(&own, attr) : 0;

	if (error)
		return error;
	if (!graph || !func || (!arg && own.arg_bytes) ||
	    !attr_suits_node(&own))
		return -EINVAL;
	if (!current_worker() || !graph_lives(graph))
		return -ESRCH;
	if (at_load(&graph->busy))
		return -EBUSY;
	if (graph->nr == INT_MAX)
		return -ENOMEM;
	error = add_node(graph, func, arg, &own);
	if (error)
		return error;
	graph_add_edges(graph, (uint32_t)graph->nr - 1, &own);
	return graph->error ? graph->error : (int)graph->nr - 1;
}

int ktrt_graph_edge(struct ktrt_graph *graph, int before, int after)
{
	if (!graph || before < 0 || after <= before ||
	    (size_t)after >= graph->nr)
		return -EINVAL;
	if (!graph_lives(graph))
		return -ESRCH;
	if (at_load(&graph->busy))
		return -EBUSY;
	graph_add_edge(graph, (uint32_t)before, (uint32_t)after, EDGE_NEEDS);
	return graph->error;
}

/* ---- running ---- */

/* Count for each node how many nodes it waits for, and how many edges it has. */
static void count_edges(struct ktrt_graph *graph)
{
	for (size_t i = 0; i < graph->nr; i++)
		graph->nodes[i]->nr_before = graph->nodes[i]->nr_after = 0;
	for (size_t i = 0; i < graph->nr_edges; i++) {
		const struct edge *edge = &graph->edges[i];

		graph->nodes[edge->before]->nr_after++;
		if (edge->kind != EDGE_SPOILS)
			graph->nodes[edge->after]->nr_before++;
	}
}

/* How many edges the node has so far. */
static uint32_t find_end(const struct ktrt_graph *graph,
			 const struct ktrt_task *node)
{
	const uint8_t *kinds = graph->kinds + (node->after - graph->after);
	uint32_t end = node->nr_after;

	while (kinds[end] == EDGE_SPOILS)
		end++;
	return end;
}

static void assign_edge(struct ktrt_graph *graph, const struct edge *edge)
{
	struct ktrt_task *node = graph->nodes[edge->before];
	uint32_t at = edge->kind == EDGE_SPOILS ? find_end(graph, node)
						: node->nr_after++;

	graph->kinds[node->after - graph->after + at] = (uint8_t)edge->kind;
	node->after[at] = graph->nodes[edge->after];
}

/*
 * The nodes that wait for one node are adjacent in the array, in the order of the nodes.
 * After them come nodes that do not wait for it but are skipped if it fails; a node that
 * has such nodes has waiting ones, too.
 */
static void assign_edges(struct ktrt_graph *graph)
{
	struct ktrt_task **next = graph->after;

	for (size_t i = 0; i < graph->nr; i++) {
		struct ktrt_task *node = graph->nodes[i];

		/* A thief may read this field as ->group, and then checks that it is none. */
		at_poke(&node->after, next);
		next += node->nr_after;
		node->nr_after = 0;
	}
	memset(graph->kinds, EDGE_ORDERS, graph->nr_edges + 1);
	for (size_t i = 0; i < graph->nr_edges; i++)
		if (graph->edges[i].kind != EDGE_SPOILS)
			assign_edge(graph, &graph->edges[i]);
	for (size_t i = 0; i < graph->nr_edges; i++)
		if (graph->edges[i].kind == EDGE_SPOILS)
			assign_edge(graph, &graph->edges[i]);
}

/* Find the nodes with which a run begins, and count those that end it. */
static void find_ends(struct ktrt_graph *graph)
{
	graph->nr_roots = graph->nr_sinks = 0;
	for (size_t i = 0; i < graph->nr; i++) {
		struct ktrt_task *node = graph->nodes[i];

		node->unmet = node->nr_before;
		if (!node->nr_before)
			graph->roots[graph->nr_roots++] = node;
		graph->nr_sinks += !node->nr_after;
	}
}

static bool array_renew(struct ktrt_task ***array, size_t nr)
{
	struct ktrt_task **renewed =
		realloc(*array, (nr + 1) * sizeof(struct ktrt_task *));

	if (renewed)
		*array = renewed;
	return renewed;
}

static bool kinds_renew(struct ktrt_graph *graph)
{
	uint8_t *kinds = realloc(graph->kinds, graph->nr_edges + 1);

	if (kinds)
		graph->kinds = kinds;
	return kinds;
}

static int settle_graph(struct ktrt_graph *graph)
{
	if (graph->settled)
		return 0;
	if (!array_renew(&graph->after, graph->nr_edges) ||
	    !array_renew(&graph->roots, graph->nr) || !kinds_renew(graph))
		return -ENOMEM;
	count_edges(graph);
	assign_edges(graph);
	find_ends(graph);
	graph->settled = true;
	return 0;
}

/* Thieves and waiters compare nesting, which is the same for all nodes. */
static void set_nesting(struct ktrt_graph *graph, uint32_t nesting)
{
	if (graph->nodes[0]->nesting == nesting + 1)
		return;
	for (size_t i = 0; i < graph->nr; i++)
		at_poke(&graph->nodes[i]->nesting, nesting + 1);
}

bool graph_node_complete(struct worker *w, struct ktrt_task *node,
			 struct ktrt_task **next)
{
	return node_complete(w, node, next);
}

/* ---- failures ---- */

/* Runs in place of the function of a node that is skipped. */
static int do_spoilt(void *arg)
{
	struct ktrt_task *task = self_worker->current;

	return task->flags & TASK_ALWAYS ? task->of->kept(arg) : -ECANCELED;
}

static void spoil_node(struct ktrt_task *node)
{
	if (at_or(&node->flags, TASK_SPOILT) & TASK_SPOILT)
		return;
	node->kept = node->func;
	node->func = do_spoilt;
	at_store(&node->parent->graph->spoilt, 1);
}

/* Called before the node is complete, so the nodes that it spoils have not begun. */
void graph_node_failed(struct ktrt_task *node)
{
	const struct ktrt_graph *graph = node->parent->graph;
	const uint8_t *kinds = graph->kinds + (node->after - graph->after);

	for (uint32_t i = 0; i < node->nr_after || kinds[i] == EDGE_SPOILS; i++)
		if (kinds[i] != EDGE_ORDERS)
			spoil_node(node->after[i]);
}

/* For the next run. */
static void mend_nodes(struct ktrt_graph *graph)
{
	if (likely(!at_load(&graph->spoilt)))
		return;
	at_store(&graph->spoilt, 0);
	for (size_t i = 0; i < graph->nr; i++) {
		struct ktrt_task *node = graph->nodes[i];

		if (!(node->flags & TASK_SPOILT))
			continue;
		node->flags &= (uint16_t)~TASK_SPOILT;
		node->func = node->kept;
	}
}

void graph_run_complete(struct ktrt_task *run)
{
	mend_nodes(run->graph);
	at_store(&run->graph->busy, 0);
}

struct running {
	struct worker *w;
	struct ktrt_task *run, *before;
};

/* A task that ran in the wait has ended the thread.  From now on the run is a child of the
 * task that asked for it. */
static void running_left(struct running *running)
{
	struct worker *w = running->w;
	struct ktrt_task *next;

	if (likely(!running->run))
		return;
	at_poke(&w->current, running->before);
	w->current->spawned++;
	next = task_ended(w, running->run, 0);
	if (next)
		task_ready(w, next);
}

/* An attached thread that may do the first node itself visits the core before nodes are ready.
 * Otherwise a worker would be woken for its CPU. */
static void begin_nodes(struct worker *w, struct ktrt_graph *graph)
{
	struct visit visit __attribute__((cleanup(visit_left))) = { NULL, 0 };

	if (unlikely(w->outer) && visitor_may_run(graph->roots[0]))
		visit_begin(&visit, w);
	for (size_t i = 0; i < graph->nr_roots; i++)
		task_ready(w, graph->roots[i]);
	if (visit.w)
		visit_continue(&visit, graph->run, NULL);
	/* A worker that takes over the core has precedence, if there is anything to wait for. */
	if (visit_end(&visit) && task_outstanding(graph->run))
		w->lent = true;
}

static int run_nodes(struct worker *w, struct ktrt_graph *graph)
{
	struct ktrt_task *run = graph->run;
	struct running running
		__attribute__((cleanup(running_left))) = { w, run, w->current };
	int code;

	task_renew(run, w->current, NULL, NULL);
	run->flags = TASK_RUN;
	run->graph = graph;
	set_nesting(graph, run->nesting);
	run->spawned = graph->nr_sinks;
	at_poke(&w->current, run);
	if (!w->core)
		w->lone = graph->nr_roots == 1;
	if (unlikely(rt.trace))
		trace_nodes(w, graph->nodes, graph->nr);
	begin_nodes(w, graph);
	code = task_wait(w, run);
	at_poke(&w->current, running.before);
	worker_forget_lone(w);
	running.run = NULL;
	return code;
}

int ktrt_graph_run(struct ktrt_graph *graph)
{
	struct worker *w = current_worker();
	uint32_t idle = 0;
	int error;

	if (!graph)
		return -EINVAL;
	if (!w || !graph_lives(graph))
		return -ESRCH;
	if (!at_cas(&graph->busy, &idle, 1))
		return -EBUSY;
	error = graph->error ? graph->error : settle_graph(graph);
	if (!error && graph->nr)
		error = run_nodes(w, graph);
	mend_nodes(graph);
	at_store(&graph->busy, 0);
	return error;
}
