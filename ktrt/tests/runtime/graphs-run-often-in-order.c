/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Graphs that are made once do each node once a run, in an order that data and
 * edges allow, run after run: random graphs against a serial model.  Nodes use
 * whatever tasks may use.
 */
#include "support/runs.h"

#define DATA 16
#define DEPS 5
#define NODES 400
#define EDGES 6

static struct datum {
	uint64_t value; /* plain: the graph alone must order it */
	int users; /* readers; -1000: a writer */
} data[DATA];

struct node {
	struct ktrt_dep deps[DEPS];
	size_t nr, nr_edges;
	int edges[EDGES]; /* nodes that must be complete */
	uint64_t mark, saw;
	unsigned done, kind, pause;
};

static struct node nodes[NODES];
static size_t nr_nodes;
static uint64_t model[DATA];
static unsigned run, wrong;

static struct datum *datum_of(const struct ktrt_dep *dep)
{
	return (struct datum *)dep->addr;
}

static uint64_t derive_value(uint64_t old, uint64_t mark)
{
	return (old ^ mark) * 0x9e3779b97f4a7c15u + 1;
}

static void use_data(struct node *node)
{
	uint64_t saw = 0;

	for (size_t i = 0; i < node->nr_edges; i++)
		if (get(nodes[node->edges[i]].done) != run)
			more(wrong);
	for (size_t i = 0; i < node->nr; i++) {
		bool writes = node->deps[i].mode & KTRT_OUT;
		int users = __atomic_fetch_add(&datum_of(&node->deps[i])->users,
					       writes ? -1000 : 1,
					       __ATOMIC_SEQ_CST);

		if (writes ? users != 0 : users < 0)
			more(wrong);
	}
	for (unsigned i = 0; i < node->pause; i++)
		__asm__ volatile("" ::: "memory");
	for (size_t i = 0; i < node->nr; i++) {
		struct datum *datum = datum_of(&node->deps[i]);

		saw = derive_value(saw, datum->value);
		if (node->deps[i].mode & KTRT_OUT)
			datum->value = derive_value(datum->value, node->mark);
	}
	for (size_t i = 0; i < node->nr; i++)
		__atomic_fetch_add(&datum_of(&node->deps[i])->users,
				   node->deps[i].mode & KTRT_OUT ? 1000 : -1,
				   __ATOMIC_SEQ_CST);
	node->saw = saw;
	set(node->done, run);
}

static int use_as_child(void *arg)
{
	use_data(*(struct node **)arg);
	return 0;
}

static int end_event(void *arg)
{
	ktrt_events_done(*(struct ktrt_task **)arg, 1);
	return 0;
}

/* In its body, or in a child, waited for or not; with an event, or a yield. */
static int do_node(void *arg)
{
	struct node *node = arg;
	struct ktrt_task *self = ktrt_self();
	int error = 0;

	switch (node->kind) {
	case 0:
		error = ktrt_spawn_copy(use_as_child, &node, sizeof(node));
		return error ? error : ktrt_wait();
	case 1:
		return ktrt_spawn_copy(use_as_child, &node, sizeof(node));
	case 2:
		error = ktrt_events_add(1);
		if (!error)
			error = ktrt_spawn_copy(end_event, &self, sizeof(self));
		break;
	case 3:
		error = ktrt_yield();
		break;
	default:
		break;
	}
	use_data(node);
	return error;
}

static void plan_node(struct node *node, size_t at, uint64_t *random)
{
	size_t nr = ktest_random_below(random, DEPS + 1);

	memset(node, 0, sizeof(*node));
	node->mark = ktest_random(random);
	node->kind = (unsigned)ktest_random_below(random, 12);
	node->pause = (unsigned)ktest_random_below(random, 500);
	for (size_t i = 0; i < nr; i++) {
		struct ktrt_dep dep = {
			&data[ktest_random_below(random, DATA)], 0,
			1 + (unsigned)ktest_random_below(random, 3)
		};
		bool named = false;

		for (size_t j = 0; j < node->nr; j++)
			named |= node->deps[j].addr == dep.addr;
		if (!named)
			node->deps[node->nr++] = dep;
	}
	nr = at ? ktest_random_below(random, EDGES + 1) : 0;
	for (size_t i = 0; i < nr; i++)
		node->edges[node->nr_edges++] =
			(int)ktest_random_below(random, at);
}

static void add_node(struct ktrt_graph *graph, uint64_t *random)
{
	struct node *node = &nodes[nr_nodes];
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep deps[DEPS + 1];

	plan_node(node, nr_nodes, random);
	memcpy(deps, node->deps, sizeof(node->deps));
	attr.deps = deps;
	attr.nr_deps = node->nr;
	/* As if the caller had not noticed: the same datum twice. */
	if (node->nr && !ktest_random_below(random, 4)) {
		deps[attr.nr_deps] = deps[ktest_random_below(random, node->nr)];
		deps[attr.nr_deps++].mode = KTRT_IN;
	}
	if (!ktest_random_below(random, 6))
		attr.priority = (int)ktest_random_below(random, 9) - 4;
	assert_int_equal(ktrt_graph_add(graph, do_node, node, &attr),
			 (int)nr_nodes);
	for (size_t i = 0; i < node->nr_edges; i++)
		assert_int_equal(
			ktrt_graph_edge(graph, node->edges[i], (int)nr_nodes),
			0);
	nr_nodes++;
}

static void check_by_model(void)
{
	for (size_t at = 0; at < nr_nodes; at++) {
		struct node *node = &nodes[at];
		uint64_t saw = 0;

		assert_int_equal(get(node->done), run);
		for (size_t i = 0; i < node->nr; i++) {
			uint64_t *value =
				&model[datum_of(&node->deps[i]) - data];

			saw = derive_value(saw, *value);
			if (node->deps[i].mode & KTRT_OUT)
				*value = derive_value(*value, node->mark);
		}
		assert_int_equal(node->saw, saw);
	}
	for (size_t i = 0; i < DATA; i++)
		assert_int_equal(data[i].value, model[i]);
	assert_int_equal(get(wrong), 0);
}

static int run_graph(void *graph)
{
	return ktrt_graph_run(graph);
}

/* Nodes are added between runs; runs are asked for by the thread, in a task,
 * and by a task two deep. */
static void random_graphs(void)
{
	static uint64_t random;
	unsigned rounds = KTEST_TSAN || KTEST_ASAN ? 3 : 12;

	if (!random)
		random = ktest_seed();
	for (unsigned round = 0; round < rounds; round++) {
		struct ktrt_graph *graph;

		nr_nodes = 0;
		assert_int_equal(ktrt_graph_new(&graph), 0);
		for (int part = 0; part < 4; part++) {
			size_t nr = ktest_random_below(&random, NODES / 4) + 1;

			while (nr--)
				add_node(graph, &random);
			for (int i = 0; i < 6; i++) {
				run++;
				assert_int_equal(
					i % 2 ? ktrt_run(run_graph, graph)
					      : ktrt_graph_run(graph),
					0);
				check_by_model();
			}
		}
		ktrt_graph_free(graph);
	}
}

static void nodes_run_in_order(void **state)
{
	in_each_way(random_graphs);
}

/* ---- several at once ---- */

#define MANY 12
#define LONG 300

struct line {
	unsigned at, runs, wrong;
};

static int next_of_line(void *arg)
{
	struct line *line = *(struct line **)arg;
	unsigned *wanted = (unsigned *)((struct line **)arg + 1);

	if (line->at++ % LONG != *wanted)
		line->wrong++;
	return 0;
}

/* A line of nodes, each with a copy of its place. */
static int run_line(void *arg)
{
	struct line *line = arg;
	struct ktrt_graph *graph;
	int error = ktrt_graph_new(&graph);

	for (unsigned i = 0; i < LONG && !error; i++) {
		struct {
			struct line *line;
			unsigned index;
		} body = { line, i };
		struct ktrt_dep dep = { line, 0, KTRT_INOUT };
		struct ktrt_attr attr = KTRT_ATTR_INIT;
		int node;

		attr.deps = &dep;
		attr.nr_deps = 1;
		attr.arg_bytes = sizeof(body);
		node = ktrt_graph_add(graph, next_of_line, &body, &attr);
		error = node == (int)i ? 0 : -EIO;
	}
	for (; line->runs < 30 && !error; line->runs++)
		error = ktrt_graph_run(graph);
	ktrt_graph_free(graph);
	return error;
}

static void many_lines(void)
{
	struct line lines[MANY] = { { 0 } };

	for (int i = 0; i < MANY; i++)
		assert_int_equal(ktrt_spawn(run_line, &lines[i]), 0);
	assert_int_equal(ktrt_wait(), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(lines[i].at, 30 * LONG);
		assert_int_equal(lines[i].wrong, 0);
	}
}

static void graphs_run_beside_each_other(void **state)
{
	in_each_way(many_lines);
}

KTEST_MAIN(KTEST(nodes_run_in_order), KTEST(graphs_run_beside_each_other))
