/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task that reads what a failed one was to write is skipped, and what it was to
 * write itself counts as such.  Whoever waits gets the code of the one that
 * failed.
 */
#include "support/runs.h"

#include "runtime/task_graph.h"

static int x, y, z, array[64];
static unsigned ran, told;

static int count_task(void *arg)
{
	more(ran);
	return 0;
}

static int fail_with(void *arg)
{
	return (int)(intptr_t)arg;
}

static int fail_late(void *arg)
{
	nap_us(200);
	return (int)(intptr_t)arg;
}

static int fail_below(void *arg)
{
	return ktrt_spawn(fail_late, arg);
}

static int catch_below(void *arg)
{
	if (ktrt_spawn(fail_late, arg))
		return -EIO;
	return ktrt_wait() == (int)(intptr_t)arg ? 0 : -EIO;
}

static int ask_cancelled(void *arg)
{
	more(ran);
	if (ktrt_cancelled())
		more(told);
	return 0;
}

#define DEPS(...)                                            \
	(const struct ktrt_dep[]){ __VA_ARGS__ },            \
		sizeof((struct ktrt_dep[]){ __VA_ARGS__ }) / \
			sizeof(struct ktrt_dep)
#define IN(datum)                    \
	{                            \
		&(datum), 0, KTRT_IN \
	}
#define OUT(datum)                    \
	{                             \
		&(datum), 0, KTRT_OUT \
	}
#define INOUT(datum)                    \
	{                               \
		&(datum), 0, KTRT_INOUT \
	}

static void spawn_as(ktrt_func func, long code, unsigned flags,
		     struct ktrt_group *group, const struct ktrt_dep *deps,
		     size_t nr)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;

	attr.deps = deps;
	attr.nr_deps = nr;
	attr.flags = flags;
	attr.group = group;
	assert_int_equal(ktrt_spawn_attr(func, (void *)code, &attr), 0);
}

static void spawn_task(ktrt_func func, long code, const struct ktrt_dep *deps,
		       size_t nr)
{
	spawn_as(func, code, 0, NULL, deps, nr);
}

static void assert_ran(unsigned nr)
{
	assert_int_equal(get(ran), nr);
	set(ran, 0);
}

/* However soon the tasks are done. */
static void those_that_read_are_skipped(void)
{
	for (int round = 0; round < 200; round++) {
		spawn_task(round % 2 ? fail_with : fail_below, 7, DEPS(OUT(x)));
		spawn_task(count_task, 0, DEPS(IN(x)));
		spawn_task(count_task, 0, DEPS(IN(x), OUT(y)));
		spawn_task(count_task, 0, DEPS(INOUT(y)));
		spawn_task(count_task, 0, DEPS(IN(y), IN(z)));
		spawn_task(count_task, 0, DEPS(OUT(z)));
		spawn_task(count_task, 0, DEPS(INOUT(x)));
		assert_int_equal(ktrt_wait(), 7);
		assert_ran(1);
	}
	/* The wait has told it. */
	spawn_task(count_task, 0, DEPS(IN(x), INOUT(y)));
	assert_int_equal(ktrt_wait(), 0);
	assert_ran(1);
}

static void others_run(void)
{
	/* Who only reads spoils nothing. */
	spawn_task(fail_late, 8, DEPS(IN(x)));
	spawn_task(count_task, 0, DEPS(INOUT(x)));
	assert_int_equal(ktrt_wait(), 8);
	assert_ran(1);
	/* Who only writes makes it good. */
	spawn_task(fail_late, 9, DEPS(OUT(x)));
	spawn_task(count_task, 0, DEPS(OUT(x)));
	spawn_task(count_task, 0, DEPS(IN(x)));
	assert_int_equal(ktrt_wait(), 9);
	assert_ran(2);
	/* A code that was waited for is no failure. */
	spawn_task(catch_below, 9, DEPS(OUT(x)));
	spawn_task(count_task, 0, DEPS(IN(x)));
	assert_int_equal(ktrt_wait(), 0);
	assert_ran(1);
}

static void some_run_always(void)
{
	set(told, 0);
	spawn_task(fail_late, 10, DEPS(OUT(x), OUT(y)));
	spawn_as(ask_cancelled, 0, KTRT_ALWAYS, NULL, DEPS(IN(x)));
	spawn_task(count_task, 0, DEPS(IN(x)));
	spawn_as(ask_cancelled, 0, KTRT_ALWAYS, NULL, DEPS(INOUT(y)));
	spawn_task(ask_cancelled, 0, DEPS(IN(y)));
	assert_int_equal(ktrt_wait(), 10);
	assert_ran(3);
	assert_int_equal(get(told), 2);
}

static void ranges_are_skipped_by_parts(void)
{
	struct ktrt_dep all = { array, sizeof(array), KTRT_OUT };
	struct ktrt_dep half = { array, sizeof(array) / 2, KTRT_IN };
	struct ktrt_dep rest = { array + 32, sizeof(array) / 2, KTRT_OUT };
	struct ktrt_dep end = { array + 48, sizeof(int), KTRT_IN };

	spawn_task(fail_late, 11, &all, 1);
	spawn_task(count_task, 0, &rest, 1);
	spawn_task(count_task, 0, &end, 1);
	spawn_task(count_task, 0, &half, 1);
	assert_int_equal(ktrt_wait(), 11);
	assert_ran(2);
	/* Cut when it is over. */
	spawn_task(fail_with, 11, &all, 1);
	nap_us(500);
	spawn_task(count_task, 0, &half, 1);
	spawn_task(count_task, 0, &rest, 1);
	spawn_task(count_task, 0, &end, 1);
	assert_int_equal(ktrt_wait(), 11);
	assert_ran(2);
	spawn_task(count_task, 0, &half, 1);
	assert_int_equal(ktrt_wait(), 0);
	assert_ran(1);
}

static void groups_have_their_codes(void)
{
	struct ktrt_group *group;
	struct ktrt_dep dep = IN(x);

	assert_int_equal(ktrt_group_new(&group), 0);
	spawn_as(fail_late, 12, 0, group, DEPS(OUT(x)));
	spawn_as(count_task, 0, 0, group, DEPS(IN(x)));
	spawn_task(count_task, 0, DEPS(IN(x)));
	assert_int_equal(ktrt_wait_for(&dep, 1), -ECANCELED);
	assert_int_equal(ktrt_group_wait(group), 12);
	assert_int_equal(ktrt_wait(), -ECANCELED);
	assert_ran(0);
	/* It was told by the group. */
	spawn_as(fail_with, 12, 0, group, DEPS(OUT(x)));
	assert_int_equal(ktrt_group_wait(group), 12);
	spawn_task(count_task, 0, DEPS(IN(x)));
	assert_int_equal(ktrt_wait(), 0);
	assert_ran(1);
	/* Cancelled ones wrote nothing. */
	ktrt_group_cancel(group);
	spawn_as(count_task, 0, 0, group, DEPS(OUT(x)));
	spawn_task(count_task, 0, DEPS(IN(x)));
	assert_int_equal(ktrt_wait(), -ECANCELED);
	assert_int_equal(ktrt_group_wait(group), -ECANCELED);
	assert_ran(0);
	ktrt_group_free(group);
}

/* More data than a table begins with. */
static void what_is_spoilt_is_not_forgotten(void)
{
	static char data[3000];

	spawn_task(fail_with, 13, DEPS(OUT(x)));
	for (int i = 0; i < 3000; i++)
		spawn_task(count_task, 0, DEPS(OUT(data[i])));
	spawn_task(count_task, 0, DEPS(IN(x)));
	assert_int_equal(ktrt_wait(), 13);
	assert_ran(3000);
}

static unsigned moved, destroyed;

static void move_object(void *to, void *from)
{
	memcpy(to, from, sizeof(int));
	more(moved);
}

static int use_object(void *arg)
{
	more(destroyed);
	return ktrt_cancelled() ? -ECANCELED : count_task(arg);
}

static void objects_are_destroyed(void)
{
	struct ktrt_dep dep = IN(x);
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	int object = 1;

	set(moved, 0);
	set(destroyed, 0);
	attr.deps = &dep;
	attr.nr_deps = 1;
	attr.arg_bytes = sizeof(object);
	attr.move = move_object;
	spawn_task(fail_late, 14, DEPS(OUT(x)));
	assert_int_equal(ktrt_spawn_attr(use_object, &object, &attr), 0);
	assert_int_equal(ktrt_wait(), 14);
	assert_int_equal(get(moved), 1);
	assert_int_equal(get(destroyed), 1);
	assert_ran(0);
}

static void spawned_ones_are_skipped(void)
{
	those_that_read_are_skipped();
	others_run();
	some_run_always();
	groups_have_their_codes();
	what_is_spoilt_is_not_forgotten();
	objects_are_destroyed();
	ranges_are_skipped_by_parts();
	/* Once there are ranges. */
	those_that_read_are_skipped();
	others_run();
	what_is_spoilt_is_not_forgotten();
}

/* ---- graphs ---- */

static int fail_if_told(void *arg)
{
	return get(*(int *)arg);
}

static int add_node(struct ktrt_graph *graph, ktrt_func func, void *arg,
		    unsigned flags, const struct ktrt_dep *deps, size_t nr)
{
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	int node;

	attr.deps = deps;
	attr.nr_deps = nr;
	attr.flags = flags;
	node = ktrt_graph_add(graph, func, arg, &attr);
	assert_true(node >= 0);
	return node;
}

static void nodes_are_skipped(void)
{
	static int first, reader;
	struct ktrt_graph *graph;
	int a, b, c;

	assert_int_equal(ktrt_graph_new(&graph), 0);
	a = add_node(graph, fail_if_told, &first, 0, DEPS(OUT(x)));
	add_node(graph, count_task, NULL, 0, DEPS(IN(x)));
	add_node(graph, fail_if_told, &reader, 0, DEPS(IN(x)));
	b = add_node(graph, count_task, NULL, 0, DEPS(INOUT(x), OUT(y)));
	add_node(graph, count_task, NULL, 0, DEPS(IN(y)));
	add_node(graph, count_task, NULL, 0, DEPS(OUT(x)));
	add_node(graph, count_task, NULL, 0, DEPS(IN(x)));
	c = add_node(graph, count_task, NULL, 0, NULL, 0);
	assert_int_equal(ktrt_graph_edge(graph, a, c), 0);
	assert_int_equal(ktrt_graph_edge(graph, b, c), 0);
	set(told, 0);
	add_node(graph, ask_cancelled, NULL, KTRT_ALWAYS, DEPS(IN(y)));
	for (int round = 0; round < 50; round++) {
		set(first, 0);
		assert_int_equal(ktrt_graph_run(graph), 0);
		assert_ran(7);
		assert_int_equal(get(told), 0);
		set(first, 15);
		assert_int_equal(ktrt_graph_run(graph), 15);
		assert_ran(3);
		assert_int_equal(get(told), 1);
		set(told, 0);
		set(first, 0);
		set(reader, 16);
		assert_int_equal(ktrt_graph_run(graph), 16);
		assert_ran(7);
		set(reader, 0);
	}
	ktrt_graph_free(graph);
}

/* Who runs always finds it spoilt, and so does who comes after that. */
static void spoilt_data_are_passed_on(void)
{
	static int first = 17;
	struct ktrt_graph *graph;

	assert_int_equal(ktrt_graph_new(&graph), 0);
	add_node(graph, fail_if_told, &first, 0, DEPS(OUT(x)));
	add_node(graph, ask_cancelled, NULL, KTRT_ALWAYS, DEPS(IN(x)));
	add_node(graph, count_task, NULL, 0, DEPS(INOUT(x)));
	for (int round = 0; round < 20; round++) {
		assert_int_equal(ktrt_graph_run(graph), 17);
		assert_ran(1);
	}
	ktrt_graph_free(graph);
}

/* It was skipped for something else: the data that it only reads stays good. */
static void readers_spoil_nothing(void)
{
	static int first = 18;
	struct ktrt_graph *graph;

	assert_int_equal(ktrt_graph_new(&graph), 0);
	add_node(graph, count_task, NULL, 0, DEPS(OUT(x)));
	add_node(graph, fail_if_told, &first, 0, DEPS(OUT(y)));
	add_node(graph, count_task, NULL, 0, DEPS(IN(x), IN(y)));
	add_node(graph, count_task, NULL, 0, DEPS(INOUT(x)));
	for (int round = 0; round < 20; round++) {
		assert_int_equal(ktrt_graph_run(graph), 18);
		assert_ran(2);
	}
	ktrt_graph_free(graph);
}

/* A writer, two readers, one that does both; @again: also after the writer for y. */
static void expect_waits(bool again, uint32_t waits)
{
	static int fails;
	struct ktrt_graph *graph;

	assert_int_equal(ktrt_graph_new(&graph), 0);
	add_node(graph, fail_if_told, &fails, 0, DEPS(OUT(x), OUT(y)));
	add_node(graph, count_task, NULL, KTRT_ALWAYS, DEPS(IN(x)));
	add_node(graph, count_task, NULL, KTRT_ALWAYS, DEPS(IN(x)));
	if (again)
		add_node(graph, count_task, NULL, 0, DEPS(INOUT(x), INOUT(y)));
	else
		add_node(graph, count_task, NULL, 0, DEPS(INOUT(x)));
	set(fails, 0);
	assert_int_equal(ktrt_graph_run(graph), 0);
	assert_ran(3);
	assert_int_equal(graph->nodes[3]->nr_before, waits);
	set(fails, 19);
	assert_int_equal(ktrt_graph_run(graph), 19);
	assert_ran(2);
	ktrt_graph_free(graph);
}

/* It comes after the writer in any case: that spoils it, and is not counted. */
static void spoiling_costs_no_edge(void **state)
{
	assert_int_equal(ktrt_start(NULL), 0);
	expect_waits(false, 2);
	expect_waits(true, 3);
	assert_int_equal(ktrt_stop(), 0);
}

static void successors_are_skipped(void **state)
{
	in_each_way(spawned_ones_are_skipped);
}

static void nodes_of_graphs_are_skipped(void **state)
{
	in_each_way(nodes_are_skipped);
	in_each_way(spoilt_data_are_passed_on);
	in_each_way(readers_spoil_nothing);
}

KTEST_MAIN(KTEST(successors_are_skipped), KTEST(nodes_of_graphs_are_skipped),
	   KTEST(spoiling_costs_no_edge))
