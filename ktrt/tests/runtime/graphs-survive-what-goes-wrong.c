/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A graph of which a run failed, was cancelled at whatever moment, or was left
 * by a thread that ended does all of its nodes in the next one.  What cannot be
 * done is refused.
 */
#include "support/runs.h"

#include <pthread.h>
#include <stdlib.h>

#include "failalloc.h"

#define WIDTH 6
#define STEPS 20
#define NODES (WIDTH * STEPS)

static unsigned begun[NODES + 1], calls;
static struct ktrt_group *group;
static unsigned cancel_at, fail_at, leave_at;
static int failed_node;

/* Its place in time, from 1 on, may be when something happens. */
static int do_node(void *arg)
{
	unsigned at = more(calls);

	more(begun[*(int *)arg]);
	if (at == cancel_at)
		ktrt_group_cancel(group);
	if (at == leave_at || at == fail_at)
		set(failed_node, *(int *)arg);
	if (at == leave_at)
		pthread_exit(NULL);
	return at == fail_at ? 77 : 0;
}

/* Each point after its neighbours of the step before. */
static struct ktrt_graph *new_stencil(void)
{
	struct ktrt_graph *graph;

	assert_int_equal(ktrt_graph_new(&graph), 0);
	for (int i = 0; i < NODES; i++) {
		struct ktrt_attr attr = KTRT_ATTR_INIT;
		int point = i % WIDTH;

		attr.arg_bytes = sizeof(i);
		assert_int_equal(ktrt_graph_add(graph, do_node, &i, &attr), i);
		for (int other = point - 1; other <= point + 1; other++)
			if (i >= WIDTH && other >= 0 && other < WIDTH)
				assert_int_equal(
					ktrt_graph_edge(
						graph,
						i - WIDTH - point + other, i),
					0);
	}
	return graph;
}

static void forget_calls(void)
{
	memset(begun, 0, sizeof(begun));
	set(calls, 0);
	cancel_at = fail_at = leave_at = 0;
}

static void check_whole_run(struct ktrt_graph *graph)
{
	forget_calls();
	assert_int_equal(ktrt_graph_run(graph), 0);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(get(begun[i]), 1);
}

/* All but those that need, over others, the one that failed. */
static void check_failed_run(void)
{
	int row = failed_node / WIDTH, point = failed_node % WIDTH;

	for (int i = 0; i < NODES; i++) {
		int later = i / WIDTH - row;

		assert_int_equal(get(begun[i]),
				 later <= 0 || abs(i % WIDTH - point) > later);
	}
}

static int run_graph(void *graph)
{
	return ktrt_graph_run(graph);
}

static void fail_nodes(void)
{
	struct ktrt_graph *graph = new_stencil();

	for (unsigned at = 1; at <= NODES; at += 7) {
		forget_calls();
		fail_at = at;
		assert_int_equal(at % 2 ? ktrt_graph_run(graph)
					: ktrt_run(run_graph, graph),
				 77);
		check_failed_run();
		check_whole_run(graph);
	}
	assert_int_equal(ktrt_wait(), 0);
	ktrt_graph_free(graph);
}

static void codes_are_of_one_run(void **state)
{
	in_each_way(fail_nodes);
}

static void cancel_runs(void)
{
	struct ktrt_graph *graph = new_stencil();

	for (unsigned at = 1; at <= NODES; at++) {
		struct ktrt_attr attr = KTRT_ATTR_INIT;
		int code;

		assert_int_equal(ktrt_group_new(&group), 0);
		forget_calls();
		cancel_at = at;
		attr.group = group;
		assert_int_equal(ktrt_spawn_attr(run_graph, graph, &attr), 0);
		code = ktrt_group_wait(group);
		/* The others may all have begun before who cancels comes to it. */
		assert_true(code == -ECANCELED ||
			    (!code && get(calls) == NODES));
		assert_true(get(calls) >= at);
		for (int i = 0; i < NODES; i++)
			assert_true(get(begun[i]) <= 1);
		ktrt_group_free(group);
		if (at % 9 == 0)
			check_whole_run(graph);
	}
	ktrt_graph_free(graph);
}

static void a_run_may_be_cancelled_at_every_moment(void **state)
{
	in_each_way(cancel_runs);
}

/* The thread that ends may be the one that waits for the run. */
static void leave_runs(void)
{
	struct ktrt_graph *graph = new_stencil();

	for (unsigned at = 1; at <= NODES; at += 5) {
		forget_calls();
		leave_at = at;
		assert_int_equal(ktrt_run(run_graph, graph), -ECANCELED);
		check_failed_run();
		check_whole_run(graph);
	}
	ktrt_graph_free(graph);
}

static void threads_may_end_in_nodes(void **state)
{
	in_each_way(leave_runs);
}

static int run_oneself(void *arg)
{
	struct ktrt_graph *graph = *(struct ktrt_graph **)arg;

	if (ktrt_graph_run(graph) != -EBUSY ||
	    ktrt_graph_edge(graph, 0, 1) != -EBUSY ||
	    ktrt_graph_add(graph, run_oneself, NULL, NULL) != -EBUSY)
		return -EIO;
	more(calls);
	return 0;
}

static void what_cannot_be_done_is_refused(void **state)
{
	struct ktrt_dep dep = { &calls, 4, KTRT_IN };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_graph *graph;

	assert_int_equal(ktrt_graph_new(&graph), -ESRCH);
	assert_null(graph);
	ktrt_graph_free(NULL);
	start_way(&all_ways[0]);
	forget_calls();
	assert_int_equal(ktrt_graph_new(&graph), 0);
	assert_int_equal(ktrt_graph_run(graph), 0);
	attr.deps = &dep;
	attr.nr_deps = 1;
	assert_int_equal(ktrt_graph_add(graph, do_node, NULL, &attr), -EINVAL);
	attr.nr_deps = 0;
	assert_int_equal(ktrt_group_new(&attr.group), 0);
	assert_int_equal(ktrt_graph_add(graph, do_node, NULL, &attr), -EINVAL);
	ktrt_group_free(attr.group);
	attr.group = NULL;
	attr.arg_bytes = sizeof(graph);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			ktrt_graph_add(graph, run_oneself, &graph, &attr), i);
	for (int before = -1; before < 3; before++)
		for (int after = -1; after < 3; after++)
			if (before != 0 || after != 1)
				assert_int_equal(
					ktrt_graph_edge(graph, before, after),
					-EINVAL);
	assert_int_equal(ktrt_graph_edge(graph, 0, 1), 0);
	assert_int_equal(ktrt_graph_run(graph), 0);
	assert_int_equal(get(calls), 2);
	/* It ends with its runtime, but for what must be freed. */
	assert_int_equal(ktrt_stop(), 0);
	assert_int_equal(ktrt_graph_run(graph), -ESRCH);
	start_way(&all_ways[0]);
	assert_int_equal(ktrt_graph_run(graph), -ESRCH);
	assert_int_equal(ktrt_graph_add(graph, do_node, NULL, NULL), -ESRCH);
	assert_int_equal(ktrt_graph_edge(graph, 0, 1), -ESRCH);
	assert_int_equal(ktrt_stop(), 0);
	ktrt_graph_free(graph);
}

/* Enough for each thing that grows to grow. */
static int make_and_run(void)
{
	static char many[100], data[80];
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_graph *graph;
	int error = ktrt_graph_new(&graph);

	for (int i = 0; i < 140 && !error; i++) {
		struct ktrt_dep deps[2] = {
			{ &data[i % 80], 0, KTRT_INOUT },
			{ &many, 0, i % 50 == 49 ? KTRT_OUT : KTRT_IN },
		};
		char copied[100] = { 0 };

		attr.deps = deps;
		attr.nr_deps = 2;
		attr.arg_bytes = i % 2 ? sizeof(copied) : sizeof(int);
		error = ktrt_graph_add(graph, do_node, copied, &attr);
		if (error >= 0)
			error = error == i ? 0 : -EIO;
	}
	if (!error)
		error = ktrt_graph_run(graph);
	ktrt_graph_free(graph);
	return error;
}

static void memory_may_be_short(void **state)
{
	unsigned nth = 0, failed;
	int error;

	start_way(&all_ways[0]);
	do {
		forget_calls();
		failalloc_arm_for(++nth, FAILALLOC_MEMORY | FAILALLOC_MMAP);
		error = make_and_run();
		failed = failalloc_disarm();
		assert_true(error == 0 || (failed && error == -ENOMEM));
		if (!error)
			assert_int_equal(get(calls), 140);
	} while (failed);
	assert_true(nth > 8);
	assert_int_equal(ktrt_stop(), 0);
}

static struct ktrt_graph *running;

static int free_own(void *arg)
{
	ktrt_graph_free(running);
	return do_node(arg);
}

/* By a node: nobody else is to free it meanwhile. */
static void a_graph_that_runs_is_not_freed(void **state)
{
	int last = NODES;

	for (size_t i = 0; i < NR_WAYS; i++) {
		start_way(&all_ways[i]);
		running = new_stencil();
		assert_int_equal(ktrt_graph_add(running, free_own, &last, NULL),
				 NODES);
		for (int before = 0; before < 2 * WIDTH; before++)
			assert_int_equal(
				ktrt_graph_edge(running, before, NODES), 0);
		for (int run = 0; run < 20; run++)
			check_whole_run(running);
		ktrt_graph_free(running);
		assert_int_equal(ktrt_stop(), 0);
	}
}

KTEST_MAIN(KTEST(codes_are_of_one_run), KTEST(a_graph_that_runs_is_not_freed),
	   KTEST(a_run_may_be_cancelled_at_every_moment),
	   KTEST(threads_may_end_in_nodes),
	   KTEST(what_cannot_be_done_is_refused), KTEST(memory_may_be_short))
