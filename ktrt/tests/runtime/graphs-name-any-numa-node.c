/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * On a machine that says that it has 64 NUMA nodes, with CPUs on the last ones only, a
 * graph that is 64 wide and names each of them runs in order, made once or of tasks with
 * dependences; nodes without a CPU, and those that the machine has not, are no node.
 */
#include "support/runs.h"

#include "runtime/rt.h"
#include "support/made_up_nodes.h"

#define NODES 64
#define STEPS 6

/* ---- the graph ---- */

static unsigned done[STEPS][NODES]; /* how often */
static unsigned runs, wrong;

static int do_point(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;
	unsigned step = number / NODES, point = number % NODES;

	for (unsigned i = point ? point - 1 : 0;
	     step && i <= point + 1 && i < NODES; i++)
		if (get(done[step - 1][i]) != get(runs))
			more(wrong);
	more(done[step][point]);
	return 0;
}

/* After its neighbours of the step before.  Return: how many dependences. */
static size_t name_data(unsigned step, unsigned point, struct ktrt_dep *deps)
{
	static char data[2][NODES];
	size_t nr = 0;

	for (unsigned i = point ? point - 1 : 0;
	     step && i <= point + 1 && i < NODES; i++)
		deps[nr++] =
			(struct ktrt_dep){ &data[!(step % 2)][i], 0, KTRT_IN };
	deps[nr++] = (struct ktrt_dep){ &data[step % 2][point], 0, KTRT_OUT };
	return nr;
}

/* Into the graph, or a task. */
static int make_point(struct ktrt_graph *graph, unsigned number)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep deps[4];
	void *arg = (void *)(uintptr_t)number;

	attr.deps = deps;
	attr.nr_deps = name_data(number / NODES, number % NODES, deps);
	/* One step names those that the machine has not. */
	attr.node = (int)(number % NODES + (number / NODES == 2 ? NODES : 0));
	attr.priority = number % 5 ? 0 : (int)(number % 3) - 1;
	return graph ? ktrt_graph_add(graph, do_point, arg, &attr)
		     : ktrt_spawn_attr(do_point, arg, &attr);
}

static void check_run(void)
{
	for (unsigned i = 0; i < STEPS * NODES; i++)
		assert_int_equal(get(done[i / NODES][i % NODES]), get(runs));
	assert_int_equal(get(wrong), 0);
}

/* Of those that have a CPU the runtime may use one only. */
static bool has_a_node(void)
{
	bool has = false;

	for (int i = NODES / 2; i < NODES; i++)
		has |= cores_node(i) >= 0;
	return has;
}

static void run_both(void)
{
	struct ktrt_graph *graph;

	memset(done, 0, sizeof(done));
	set(runs, 0);
	assert_int_equal(cores_node(NODES), -1);
	assert_int_equal(cores_node(0), -1);
	assert_true(has_a_node());
	assert_int_equal(ktrt_graph_new(&graph), 0);
	for (unsigned i = 0; i < STEPS * NODES; i++)
		assert_int_equal(make_point(graph, i), (int)i);
	for (int i = 0; i < 8; i++) {
		more(runs);
		assert_int_equal(ktrt_graph_run(graph), 0);
		check_run();
		more(runs);
		for (unsigned j = 0; j < STEPS * NODES; j++)
			assert_int_equal(make_point(NULL, j), 0);
		assert_int_equal(ktrt_wait(), 0);
		check_run();
	}
	ktrt_graph_free(graph);
}

static void nodes_up_to_63(void **state)
{
	made_up_nodes_begin(NODES);
	in_each_way(run_both);
	made_up_nodes_end();
}

KTEST_MAIN(KTEST(nodes_up_to_63))
