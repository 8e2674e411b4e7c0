/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An attached thread that makes one task at a time, and waits for it, hands it to the worker of
 * the CPU that the thread runs on.  In the middle of a task such a thread goes on, so what it
 * makes there wakes workers of other CPUs first.
 */
#include "support/attached_thread.h"

static struct ktrt_graph *graph;

static int do_nothing(void *arg)
{
	return 0;
}

/* Does the task go to the worker that can only run once this thread sleeps? */
static bool hands_over(void)
{
	struct worker *w = self_worker;

	ktest_check(holds_soon(idle_cores() == rt.nr_cores &&
			       !(at_load(&rt.idlers) >> 32)));
	w->lent = false;
	ktest_check(!ktrt_spawn(do_nothing, NULL));
	return w->lent;
}

/* ---- what the task does before; the last two are waits for one task, too ---- */

static void begin_task(void)
{
}

static void run_one(void)
{
	ktest_check(!ktrt_run(do_nothing, NULL));
}

static void run_graph(void)
{
	ktest_check(!ktrt_graph_run(graph));
}

static void (*const begins[])(void) = { begin_task, run_one, run_graph };

static int continue_task(void *begin)
{
	(*(void (*const *)(void))begin)();
	ktest_check(!self_worker->core);
	ktest_check(!hands_over());
	return 0;
}

static int check_begin(void *begin)
{
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	options.flags = KTRT_NO_UMT;
	ktest_check(!ktrt_start(&options));
	stay_on_a_core();
	ktest_check(!ktrt_graph_new(&graph));
	ktest_check(!ktrt_graph_add(graph, do_nothing, NULL, NULL));
	ktest_check(!ktrt_spawn(do_nothing, NULL));
	ktest_check(!ktrt_wait());
	ktest_check(hands_over());
	ktest_check(!ktrt_wait());
	attr.flags = KTRT_UNDEFERRED;
	ktest_check(!ktrt_spawn_attr(continue_task, begin, &attr));
	ktest_check(!ktrt_wait());
	ktrt_graph_free(graph);
	ktest_check(!ktrt_stop());
	return 0;
}

static void only_outside_of_tasks_is_it_lent(void **state)
{
	int failed = 0;

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(begins); i++)
		failed += !!ktest_in_child(check_begin, (void *)&begins[i]);
	assert_int_equal(failed, 0);
}

KTEST_MAIN(KTEST(only_outside_of_tasks_is_it_lent))
