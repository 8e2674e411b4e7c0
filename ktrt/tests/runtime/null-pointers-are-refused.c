/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where a call cannot do without a pointer, NULL is -EINVAL; a call that returns no error
 * does nothing then.
 */
#include "support/runs.h"

static int do_nothing(void *arg)
{
	return 0;
}

static int do_args(void *a, void *b, void *c, void *d)
{
	return 0;
}

static int do_range(size_t first, size_t end, void *arg)
{
	return 0;
}

static int add_range(size_t first, size_t end, void *value, void *arg)
{
	return 0;
}

static int combine_sums(void *into, void *from, void *arg)
{
	return 0;
}

static void drop_nothing(void *object)
{
}

static void refused_by_tasks(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	assert_int_equal(ktrt_spawn(NULL, NULL), -EINVAL);
	assert_int_equal(ktrt_spawn_copy(NULL, &attr, 8), -EINVAL);
	assert_int_equal(ktrt_spawn_copy(do_nothing, NULL, 8), -EINVAL);
	assert_int_equal(ktrt_spawn_copy(do_nothing, NULL, 0), 0);
	assert_null(ktrt_spawn_begin(NULL, 8, 0));
	assert_int_equal(ktrt_spawn_attr(do_nothing, NULL, NULL), -EINVAL);
	assert_int_equal(ktrt_spawn_attr(NULL, NULL, &attr), -EINVAL);
	assert_int_equal(ktrt_spawn_args(NULL, NULL, NULL, NULL, NULL, NULL, 0),
			 -EINVAL);
	assert_int_equal(
		ktrt_spawn_args(do_args, NULL, NULL, NULL, NULL, NULL, 1),
		-EINVAL);
	attr.arg_bytes = 8;
	assert_int_equal(ktrt_spawn_attr(do_nothing, NULL, &attr), -EINVAL);
	assert_int_equal(ktrt_wait_for(NULL, 1), -EINVAL);
	assert_int_equal(ktrt_run(NULL, NULL), -EINVAL);
	assert_null(ktrt_reduction_copy(NULL));
	ktrt_events_done(NULL, 1);
	assert_int_equal(ktrt_wait(), 0);
}

static void refused_by_groups(void)
{
	assert_int_equal(ktrt_group_new(NULL), -EINVAL);
	assert_int_equal(ktrt_group_wait(NULL), -EINVAL);
	ktrt_group_cancel(NULL);
	ktrt_group_free(NULL);
}

static void refused_by_graphs(void)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_graph *graph;

	assert_int_equal(ktrt_graph_new(NULL), -EINVAL);
	assert_int_equal(ktrt_graph_add(NULL, do_nothing, NULL, NULL), -EINVAL);
	assert_int_equal(ktrt_graph_edge(NULL, 0, 1), -EINVAL);
	assert_int_equal(ktrt_graph_run(NULL), -EINVAL);
	ktrt_graph_free(NULL);
	if (ktrt_graph_new(&graph))
		return;
	attr.arg_bytes = 8;
	assert_int_equal(ktrt_graph_add(graph, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(ktrt_graph_add(graph, do_nothing, NULL, &attr),
			 -EINVAL);
	ktrt_graph_free(graph);
}

static void refused_by_loops(void)
{
	long value = 0;

	assert_int_equal(ktrt_for(0, 9, 1, NULL, NULL), -EINVAL);
	assert_int_equal(ktrt_reduce(0, 9, 1, NULL, combine_sums, &value,
				     sizeof(value), NULL),
			 -EINVAL);
	assert_int_equal(ktrt_reduce(0, 9, 1, add_range, NULL, &value,
				     sizeof(value), NULL),
			 -EINVAL);
	assert_int_equal(ktrt_reduce(0, 9, 1, add_range, combine_sums, NULL,
				     sizeof(value), NULL),
			 -EINVAL);
	assert_int_equal(ktrt_for(0, 9, 1, do_range, NULL), 0);
	assert_int_equal(
		ktrt_reduce(0, 9, 1, add_range, combine_sums, NULL, 0, NULL),
		0);
}

static void refused_by_information(void)
{
	int code = ktrt_code_new("kind", NULL, drop_nothing);

	assert_int_equal(ktrt_info_get(NULL), -EINVAL);
	assert_int_equal(ktrt_cpus(NULL, 5), -EINVAL);
	assert_int_equal(ktrt_code_new(NULL, NULL, drop_nothing), -EINVAL);
	assert_int_equal(ktrt_code_new("kind", NULL, NULL), -EINVAL);
	assert_null(ktrt_code_take(code, NULL));
	ktrt_code_drop(code);
}

static void by_all_calls(void **state)
{
	assert_int_equal(ktrt_start(NULL), 0);
	refused_by_tasks();
	refused_by_groups();
	refused_by_graphs();
	refused_by_loops();
	refused_by_information();
	assert_true(ktrt_cpus(NULL, 0) > 0);
	assert_true(ktrt_cpus(NULL, -5) > 0);
	assert_int_equal(ktrt_stop(), 0);
}

static void without_a_runtime(void **state)
{
	refused_by_groups();
	refused_by_graphs();
	refused_by_information();
	ktrt_events_done(NULL, 1);
	assert_int_equal(ktrt_cpus(NULL, 0), -ESRCH);
}

KTEST_MAIN(KTEST(without_a_runtime), KTEST(by_all_calls))
