/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Nodes of a graph without edges, of which workers take several at a time and count
 * several together: each is done once in a run, and when the run is over all are
 * complete, whatever they do.
 */
#include "support/runs.h"

#include <pthread.h>
#include <sched.h>

#define RUNS 60
#define WIDEST 400

enum deed {
	NOTHING,
	WORKS,
	NAPS,
	YIELDS,
	MAKES,
	WAITS,
	FAILS,
	LEAVES,
	NR_DEEDS
};

struct node {
	ktrt_func func; /* for ktrt_dispatch() */
	unsigned done, children;
	enum deed deed;
};

static struct node nodes[WIDEST];
static uint64_t numbers;

static int be_child(void *arg)
{
	struct node *node = arg;

	sched_yield();
	more(node->children);
	return 0;
}

static int do_node(void *arg)
{
	struct node *node = arg;
	int error = 0;

	more(node->done);
	switch (node->deed) {
	case WORKS:
		for (volatile int i = 0; i < 1000; i++)
			;
		break;
	case NAPS:
		nap_us(50);
		break;
	case YIELDS:
		error = ktrt_yield();
		break;
	case MAKES:
	case WAITS:
		for (int i = 0; i < 3 && !error; i++)
			error = ktrt_spawn(be_child, node);
		if (node->deed == WAITS && !error)
			error = ktrt_wait();
		break;
	case FAILS:
		error = -EDOM;
		break;
	case LEAVES:
		pthread_exit(NULL);
	default:
		break;
	}
	return error;
}

/* Most do next to nothing, and few leave their thread. */
static enum deed choose_deed(bool harmless)
{
	uint64_t number = ktest_random_below(&numbers, 256);

	if (number >= 64)
		return number % 2 ? NOTHING : WORKS;
	if (number < 2)
		return harmless ? NAPS : LEAVES;
	return number % (harmless ? FAILS : LEAVES);
}

static struct ktrt_graph *make_nodes(unsigned width, bool harmless)
{
	struct ktrt_graph *graph;

	assert_int_equal(ktrt_graph_new(&graph), 0);
	for (unsigned i = 0; i < width; i++) {
		nodes[i].func = do_node;
		nodes[i].deed = choose_deed(harmless);
		/* What may end the attached thread must not count as brief. */
		assert_int_equal(
			ktrt_graph_add(graph,
				       harmless ? do_node : ktrt_dispatch,
				       &nodes[i], NULL),
			i);
	}
	return graph;
}

static int run_graph(void *arg)
{
	return ktrt_graph_run(arg);
}

/* Inside a task, by a thread that is attached. */
static void check_run(struct ktrt_graph *graph, unsigned width, bool inside)
{
	bool failing = false;
	int error;

	for (unsigned i = 0; i < width; i++)
		nodes[i].done = nodes[i].children = 0;
	error = inside ? ktrt_run(run_graph, graph) : ktrt_graph_run(graph);
	for (unsigned i = 0; i < width; i++) {
		enum deed deed = nodes[i].deed;

		assert_int_equal(get(nodes[i].done), 1);
		assert_int_equal(get(nodes[i].children),
				 deed == MAKES || deed == WAITS ? 3 : 0);
		failing |= deed == FAILS || deed == LEAVES;
	}
	if (failing)
		assert_true(error == -EDOM || error == -ECANCELED);
	else
		assert_int_equal(error, 0);
}

static void run_widths(void)
{
	for (int i = 0; i < RUNS; i++) {
		unsigned width =
			1 + (unsigned)ktest_random_below(&numbers, WIDEST);
		struct ktrt_graph *graph = make_nodes(width, i % 2);

		check_run(graph, width, true);
		check_run(graph, width, false);
		check_run(graph, width, true);
		ktrt_graph_free(graph);
	}
}

static void each_is_done_once(void **state)
{
	numbers = ktest_seed();
	in_each_way(run_widths);
}

KTEST_MAIN(KTEST(each_is_done_once))
