/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tasks that wait for what they made find it, whatever its priority and node,
 * however deep it is and whatever stands before it, with as few threads as may
 * be: random trees of tasks end, each task having run once, and no more threads
 * than max_threads were there.
 */
#include "support/counted_threads.h"

#include <pthread.h>

#define TASKS_MOST 400
#define GRAPHS (KTEST_TSAN || KTEST_ASAN ? 100 : 700)

/* What the tasks of one graph share. */
static struct graph {
	uint64_t seed;
	unsigned long made, done; /* tasks */
	unsigned levels, width;
	char data[4];
} graph;

struct node {
	uint64_t random;
	unsigned levels;
};

static int visit_node(void *arg);

/* 0, or one of few, so that some are equal. */
static int some_priority(uint64_t *random)
{
	return ktest_random_below(random, 2)
		       ? 0
		       : (int)ktest_random_below(random, 5) - 2;
}

static int make_child(uint64_t *random, unsigned levels,
		      struct ktrt_group *group)
{
	struct node child = { ktest_random(random), levels };
	struct ktrt_attr attr = KTRT_ATTR_INIT;
	struct ktrt_dep dep = { &graph.data[ktest_random_below(random, 4)], 0,
				1 + (unsigned)ktest_random_below(random, 3) };

	if (more(graph.made) > TASKS_MOST) {
		__atomic_sub_fetch(&graph.made, 1, __ATOMIC_SEQ_CST);
		return 0;
	}
	if (!ktest_random_below(random, 4))
		return ktrt_spawn_copy(visit_node, &child, sizeof(child));
	attr.arg_bytes = sizeof(child);
	attr.priority = some_priority(random);
	attr.node = (int)ktest_random_below(random, 2) - 1;
	attr.group = ktest_random_below(random, 2) ? group : NULL;
	attr.deps = &dep;
	attr.nr_deps = !ktest_random_below(random, 3);
	return ktrt_spawn_attr(visit_node, &child, &attr);
}

/* In one of the ways to wait, or not at all. */
static int wait_somehow(uint64_t *random, struct ktrt_group *group)
{
	switch (ktest_random_below(random, 4)) {
	case 0:
		return 0;
	case 1:
		return group ? ktrt_group_wait(group) : ktrt_wait();
	default:
		return ktrt_wait();
	}
}

static int count_task(void *arg)
{
	more(graph.done);
	return 0;
}

static int visit_node(void *arg)
{
	struct node node = *(struct node *)arg;
	struct ktrt_group *group = NULL;
	unsigned nr = (unsigned)ktest_random_below(&node.random, graph.width);
	int error = 0;

	if (!ktest_random_below(&node.random, 3))
		error = ktrt_group_new(&group);
	for (unsigned i = 0; i < nr && node.levels && !error; i++) {
		error = make_child(&node.random, node.levels - 1, group);
		if (!error && !ktest_random_below(&node.random, 8))
			error = wait_somehow(&node.random, group);
	}
	if (!error)
		error = wait_somehow(&node.random, group);
	if (!error && !ktest_random_below(&node.random, 8)) {
		more(graph.made);
		error = ktrt_run(count_task, NULL);
	}
	ktrt_group_free(group);
	more(graph.done);
	return error;
}

static int over;

/* What would hang is a failure once nothing has ended for a minute. */
static void *watch_graphs(void *arg)
{
	while (!get(over)) {
		unsigned long seen = get(graph.done);

		if (holds_soon(get(graph.done) != seen || get(over)))
			continue;
		fprintf(stderr, "# hangs: %lu of %lu done, seed %llu\n", seen,
			get(graph.made), (unsigned long long)graph.seed);
		_exit(1);
	}
	return NULL;
}

static void begin_graph(uint64_t *random)
{
	graph.seed = ktest_random(random);
	graph.levels = 1 + (unsigned)ktest_random_below(random, 6);
	graph.width = 2 + (unsigned)ktest_random_below(random, 8);
	set(graph.made, 1);
	set(graph.done, 0);
}

/* Made by the thread itself, or by a task. */
static void run_graph(uint64_t *random)
{
	struct node root;

	begin_graph(random);
	root = (struct node){ graph.seed, graph.levels };
	if (ktest_random_below(random, 2)) {
		assert_int_equal(ktrt_run(visit_node, &root), 0);
	} else {
		assert_int_equal(
			ktrt_spawn_copy(visit_node, &root, sizeof(root)), 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(make_child(random, graph.levels, NULL),
					 0);
		assert_int_equal(ktrt_wait(), 0);
	}
	assert_int_equal(get(graph.done), get(graph.made));
}

static struct ktrt_info info_now(void)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	assert_int_equal(ktrt_info_get(&info), 0);
	return info;
}

static void random_graphs(const struct ktrt_options *options, uint64_t *random)
{
	assert_int_equal(ktrt_start(options), 0);
	for (int i = 0; i < GRAPHS; i++) {
		run_graph(random);
		assert_true(workers_are_at_most(info_now().max_threads));
	}
	printf("# max_threads %u: %u threads, %llu stalls, %llu tasks\n",
	       options->max_threads, info_now().threads,
	       (unsigned long long)info_now().stalls,
	       (unsigned long long)info_now().tasks);
	assert_int_equal(ktrt_stop(), 0);
}

static void random_graphs_end(void **state)
{
	static const unsigned limits[] = { 1, 2, 3, 5, 8, 0 };
	struct ktrt_options options = KTRT_OPTIONS_INIT;
	uint64_t random = ktest_seed();
	pthread_t watcher;

	assert_int_equal(pthread_create(&watcher, NULL, watch_graphs, NULL), 0);
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(limits); i++) {
		options.max_threads = limits[i];
		options.flags = i % 2 ? KTRT_NO_UMT : 0;
		random_graphs(&options, &random);
	}
	set(over, 1);
	pthread_join(watcher, NULL);
}

KTEST_MAIN(KTEST(random_graphs_end))
