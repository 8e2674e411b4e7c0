/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cases by the task runtime.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <ktask/runtime.h>

#include "bench/tasks/cases.h"
#include "bench/tasks/parts.h"

static void start_runtime(int threads)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;

	options.workers = (unsigned)threads;
	if (!getenv("BENCH_TASKS_SOON"))
		options.flags = KTRT_UMT_FIRST;
	if (ktrt_start(&options))
		abort();
}

static void stop_runtime(void)
{
	ktrt_stop();
}

static int do_nothing(void *arg)
{
	task_nothing();
	return 0;
}

static int make_empty(void *arg)
{
	for (int i = 0; i < *(int *)arg; i++)
		ktrt_spawn(do_nothing, NULL);
	return ktrt_wait();
}

static void run_empty(int nr)
{
	ktrt_run(make_empty, &nr);
}

static void run_makers(int nr, int threads)
{
	int each = nr / threads;

	for (int i = 0; i < threads; i++)
		ktrt_spawn(make_empty, &each);
	ktrt_wait();
}

static int make_chain(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { arg, 0, KTRT_INOUT };

	attr.deps = &dep;
	attr.nr_deps = 1;
	for (int i = 0; i < *(int *)arg; i++)
		ktrt_spawn_attr(do_nothing, NULL, &attr);
	return ktrt_wait();
}

static void run_chain(int nr)
{
	ktrt_run(make_chain, &nr);
}

static int make_fans(void *arg)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { arg, 0, KTRT_INOUT };

	attr.deps = &dep;
	attr.nr_deps = 1;
	for (int i = 0; i < *(int *)arg; i++) {
		dep.mode = KTRT_INOUT;
		ktrt_spawn_attr(do_nothing, NULL, &attr);
		dep.mode = KTRT_IN;
		for (int j = 0; j < 16; j++)
			ktrt_spawn_attr(do_nothing, NULL, &attr);
	}
	return ktrt_wait();
}

static void run_fans(int nr)
{
	ktrt_run(make_fans, &nr);
}

struct fib {
	int n;
	long result;
};

static int do_fib(void *arg)
{
	struct fib *this = arg;
	struct fib one = { this->n - 1, 0 }, two = { this->n - 2, 0 };

	if (this->n < 2) {
		this->result = this->n;
		return 0;
	}
	ktrt_spawn(do_fib, &one);
	ktrt_spawn(do_fib, &two);
	ktrt_wait();
	this->result = one.result + two.result;
	return 0;
}

static long run_fib(int n)
{
	struct fib top = { n, 0 };

	ktrt_run(do_fib, &top);
	return top.result;
}

static int one_work(void *arg)
{
	task_work((int)(intptr_t)arg);
	return 0;
}

static int make_work(void *arg)
{
	const int *nr = arg;

	for (int i = 0; i < nr[0]; i++)
		ktrt_spawn(one_work, (void *)(intptr_t)nr[1]);
	return ktrt_wait();
}

static void run_work(int nr, int ns)
{
	int args[2] = { nr, ns };

	ktrt_run(make_work, args);
}

static void work_outside(int nr, int ns)
{
	int args[2] = { nr, ns };

	make_work(args);
}

static int one_block(void *arg)
{
	task_block();
	return 0;
}

static int make_block(void *arg)
{
	for (int i = 0; i < *(int *)arg; i++)
		ktrt_spawn(one_block, NULL);
	return ktrt_wait();
}

static void run_block(int nr)
{
	ktrt_run(make_block, &nr);
}

static int do_stamp(void *arg)
{
	task_stamp();
	return 0;
}

static void wake_worker(void)
{
	ktrt_spawn(do_stamp, NULL);
	ktrt_wait();
}

/* ---- graphs: made once, or of dependences each time ---- */

static struct ktrt_graph *made;

static int one_point(void *arg)
{
	task_point((int)(intptr_t)arg);
	return 0;
}

static void make_graph(const struct task_graph *graph)
{
	int points[BEFORE_MAX];

	if (ktrt_graph_new(&made))
		abort();
	for (int i = 0; i < graph->steps * graph->width; i++) {
		int step = i / graph->width;
		int nr = step ? graph->before(graph->width, step,
					      i % graph->width, points)
			      : 0;

		if (ktrt_graph_add(made, one_point, (void *)(intptr_t)i,
				   NULL) != i)
			abort();
		while (nr--)
			ktrt_graph_edge(made,
					(step - 1) * graph->width + points[nr],
					i);
	}
}

/* Of each point the data of two steps. */
static char data[2][1024];

static void spawn_point(const struct task_graph *graph, int step, int point)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep deps[BEFORE_MAX + 1];
	int points[BEFORE_MAX];
	int nr = step ? graph->before(graph->width, step, point, points) : 0;

	for (int i = 0; i < nr; i++)
		deps[i] = (struct ktrt_dep){ &data[!(step & 1)][points[i]], 0,
					     KTRT_IN };
	deps[nr] = (struct ktrt_dep){ &data[step & 1][point], 0, KTRT_OUT };
	attr.deps = deps;
	attr.nr_deps = (size_t)nr + 1;
	ktrt_spawn_attr(one_point,
			(void *)(intptr_t)(step * graph->width + point), &attr);
}

static int spawn_graph(void *arg)
{
	const struct task_graph *graph = arg;

	for (int i = 0; i < graph->steps * graph->width; i++)
		spawn_point(graph, i / graph->width, i % graph->width);
	return ktrt_wait();
}

/* All others come after it.  The only worker makes these, so it does not begin before. */
static void spawn_first(const struct task_graph *graph)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep deps[2 * BEFORE_MAX];

	for (int i = 0; i < 2 * graph->width; i++)
		deps[i] = (struct ktrt_dep){ &data[i & 1][i / 2], 0, KTRT_OUT };
	attr.deps = deps;
	attr.nr_deps = 2 * (size_t)graph->width;
	ktrt_spawn_attr(do_nothing, NULL, &attr);
}

struct parts {
	const struct task_graph *graph;
	double making, running;
};

static int do_parts(void *arg)
{
	struct parts *parts = arg;
	const struct task_graph *graph = parts->graph;
	double start, all_made;
	int error;

	spawn_first(graph);
	start = thread_ns();
	for (int i = 0; i < graph->steps * graph->width; i++)
		spawn_point(graph, i / graph->width, i % graph->width);
	all_made = thread_ns();
	error = ktrt_wait();
	parts->making = all_made - start;
	parts->running = thread_ns() - all_made;
	return error;
}

static void part_graph(const struct task_graph *graph, double *making,
		       double *running)
{
	struct parts parts = { graph, 0, 0 };

	if (ktrt_run(do_parts, &parts))
		abort();
	*making = parts.making;
	*running = parts.running;
}

static int run_made(void *arg)
{
	return ktrt_graph_run(made);
}

static void run_graph(const struct task_graph *graph)
{
	bool depend = getenv("BENCH_TASKS_DEPEND");

	if (getenv("BENCH_TASKS_ATTACHED"))
		ktrt_graph_run(made);
	else
		ktrt_run(depend ? spawn_graph : run_made, (void *)graph);
}

static int do_indices(size_t first, size_t end, void *nr)
{
	for (; first < end; first++)
		task_index(first, *(size_t *)nr);
	return 0;
}

static void run_loop(size_t nr)
{
	ktrt_for(0, nr, 0, do_indices, &nr);
}

/* ---- sweeps ---- */

static int one_cell(void *sweep, void *cell, void *unused, void *none)
{
	task_cell((int)(intptr_t)sweep, (int)(intptr_t)cell);
	return 0;
}

static int one_sweep(void *sweep)
{
	for (int cell = 0; cell < CELLS; cell++) {
		struct ktrt_dep deps[] = {
			{ &cell_data[cell], 0, KTRT_INOUT },
			{ &cell_data[cell ? cell - 1 : 0], 0, KTRT_IN },
		};

		ktrt_spawn_args(one_cell, sweep, (void *)(intptr_t)cell, NULL,
				NULL, deps, cell ? 2 : 1);
	}
	return 0;
}

struct sweeps {
	int nr;
	bool is_weak;
};

/* What is named weakly by one dependence is released together, so each cell has its own. */
static int make_sweeps(void *arg)
{
	const struct sweeps *this = arg;
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep deps[CELLS];

	for (int i = 0; i < CELLS; i++)
		deps[i] = (struct ktrt_dep){ &cell_data[i], 0,
					     this->is_weak ? KTRT_WEAK_INOUT
							   : KTRT_INOUT };
	attr.deps = deps;
	attr.nr_deps = this->is_weak ? CELLS : 1;
	for (int i = 0; i < this->nr; i++)
		ktrt_spawn_attr(one_sweep, (void *)(intptr_t)i, &attr);
	return ktrt_wait();
}

static bool run_sweeps(int nr, bool is_weak)
{
	struct sweeps sweeps = { nr, is_weak };

	return !ktrt_run(make_sweeps, &sweeps);
}

const struct runtime_cases cases = {
	start_runtime, stop_runtime, run_empty,	   run_makers, run_chain,
	run_fans,      run_fib,	     run_work,	   run_block,  wake_worker,
	wake_worker,   NULL,	     make_graph,   run_graph,  run_loop,
	&programs,     run_sweeps,   work_outside, part_graph
};
