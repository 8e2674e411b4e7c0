/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * On machines with several nodes and caches, laid out from tests/topologies: a
 * worker takes tasks of its own cache first, then of its node, then of the
 * nearest nodes, and so from node queues; workers side by side begin with different
 * victims; the search for an idle core is bounded and goes on where the last
 * one ended.
 */
#include "runtime/cpu_topology.h"
#include "support/bare_runtime.h"
#include "topology.h"

#define CPUS_MAX 256

static const struct machine {
	const char *name;
	unsigned cpus, nodes, caches;
	const char *near[8]; /* by node: the others, nearest first */
} machines[] = {
	{ "one-node", 4, 1, 1, { "" } },
	{ "two-nodes", 16, 2, 2, { "1", "0" } },
	{ "four-nodes", 16, 4, 4, { "132", "203", "310", "021" } },
	{ "four-nodes-asymmetric", 8, 4, 4, { "123", "230", "301", "012" } },
	{ "eight-nodes",
	  32,
	  8,
	  8,
	  { "1234567", "2304567", "3014567", "0124567", "5670123", "6740123",
	    "7450123", "4560123" } },
	{ "sparse-nodes", 8, 2, 2, { "1", "0" } },
	{ "eight-caches", 32, 2, 8, { "1", "0" } },
};

static struct tree tree;
static struct ktrt_task tasks[CPUS_MAX];

/* ---- a runtime without threads ---- */

static void begin_machine(const char *name, unsigned nr_cpus)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (unsigned cpu = 0; cpu < nr_cpus; cpu++)
		CPU_SET(cpu, &cpus);
	if (name)
		topology_begin(&tree, name);
	else
		tree_begin(&tree);
	topology_root = tree.root;
	bare_runtime_begin(&cpus, nr_cpus, 2 * nr_cpus);
}

static void end_machine(void)
{
	bare_runtime_end();
	topology_end(&tree);
	topology_root = "";
}

static struct worker *workers[CPUS_MAX]; /* by core */

static void make_workers(void)
{
	for (unsigned i = 0; i < rt.nr_cores; i++) {
		workers[i] = worker_new(rt.cores[i].cache);
		assert_non_null(workers[i]);
		workers[i]->core = &rt.cores[i];
	}
}

/* Task @i, into the queue of core @i's worker. */
static void give_task(unsigned i)
{
	memset(&tasks[i], 0, sizeof(tasks[i]));
	assert_true(deque_push(&workers[i]->deque, &tasks[i]));
	*mask_flag(rt.loaded, workers[i]->slot) = 1;
}

/* The core whose task the worker of core @thief takes; -1: none. */
static int take_task(unsigned thief)
{
	struct ktrt_task *task = sched_take(workers[thief]);

	return task ? (int)(task - tasks) : -1;
}

/* ---- who is near ---- */

static int measure_farness(const struct machine *machine,
			   const struct core *from, const struct core *to)
{
	const char *near = machine->near[from->node];

	if (from->cache == to->cache)
		return 0;
	if (from->node == to->node)
		return 1;
	return 2 + (int)(strchr(near, '0' + to->node) - near);
}

/* All have a task but the thief, who takes them all. */
static void rob_everybody(const struct machine *machine, unsigned thief)
{
	int before = 0, from;
	unsigned nr = 0;

	for (unsigned i = 0; i < rt.nr_cores; i++)
		if (i != thief)
			give_task(i);
	while ((from = take_task(thief)) >= 0) {
		int now = measure_farness(machine, &rt.cores[thief],
					  &rt.cores[from]);

		assert_true(now >= before);
		before = now;
		nr++;
	}
	assert_int_equal(nr, rt.nr_cores - 1);
}

static void clear_node_queues(const struct machine *machine, unsigned thief)
{
	const struct node *node = &rt.nodes[rt.cores[thief].node];

	for (unsigned i = 0; i < rt.nr_nodes; i++) {
		memset(&tasks[i], 0, sizeof(tasks[i]));
		assert_true(node_queue_put(&rt.node_queues[i], &tasks[i]));
	}
	assert_int_equal(take_task(thief), node - rt.nodes);
	for (unsigned i = 1; i < rt.nr_nodes; i++)
		assert_int_equal(take_task(thief),
				 machine->near[node - rt.nodes][i - 1] - '0');
	assert_int_equal(take_task(thief), -1);
}

static void near_ones_come_first(void **state)
{
	for (size_t i = 0; i < KTEST_ARRAY_SIZE(machines); i++) {
		const struct machine *machine = &machines[i];

		printf("# %s\n", machine->name);
		begin_machine(machine->name, machine->cpus);
		assert_int_equal(rt.nr_cores, machine->cpus);
		assert_int_equal(rt.nr_nodes, machine->nodes);
		assert_int_equal(rt.nr_caches, machine->caches);
		make_workers();
		for (unsigned thief = 0; thief < rt.nr_cores; thief++) {
			rob_everybody(machine, thief);
			clear_node_queues(machine, thief);
		}
		end_machine();
	}
}

/* A worker that was put on a core of another cache robs there. */
static void near_is_where_the_worker_is(void **state)
{
	begin_machine("eight-caches", 32);
	make_workers();
	workers[0]->core = &rt.cores[9];
	give_task(1);
	give_task(10);
	assert_int_equal(take_task(0), 10);
	assert_int_equal(take_task(0), 1);
	end_machine();
}

static void side_by_side_they_rob_different_ones(void **state)
{
	unsigned robbed = 0;

	begin_machine("eight-caches", 32);
	make_workers();
	for (unsigned i = 4; i < 8; i++)
		give_task(i);
	/* The first of those would do for each of them. */
	for (unsigned thief = 0; thief < 4; thief++) {
		int from = take_task(thief);

		assert_true(from >= 4 && from < 8);
		give_task((unsigned)from);
		robbed |= 1u << from;
	}
	assert_int_equal(robbed, 0xf0);
	end_machine();
}

/* ---- machines that tell nonsense, or nothing ---- */

static void any_machine_has_an_order(void **state)
{
	static const char *const names[] = { "garbage",	    "silent",
					     "cpu-only",    "memory-only",
					     "offline",	    "big-little",
					     "guest-eight", "hybrid" };

	for (size_t i = 0; i < KTEST_ARRAY_SIZE(names); i++) {
		begin_machine(names[i], 16);
		assert_int_equal(rt.nr_cores, 16);
		for (unsigned c = 1; c < 16; c++) {
			assert_true(rt.cores[c].cache >= rt.cores[c - 1].cache);
			assert_true(rt.cores[c].node >= rt.cores[c - 1].node);
		}
		for (unsigned n = 0; n < rt.nr_nodes; n++) {
			unsigned seen = 1u << n;

			for (unsigned j = 0; j + 1 < rt.nr_nodes; j++)
				seen |= 1u << rt.nodes[n].near[j];
			assert_int_equal(seen, (1u << rt.nr_nodes) - 1);
		}
		end_machine();
	}
}

/* ---- idle cores ---- */

static void make_idle(unsigned core, struct worker *w)
{
	rt.cores[core].active = 0;
	rt.cores[core].parked = w;
	rt.cores[core].wants_thread = 0;
	if (w)
		w->listed = true;
	*mask_flag(rt.idle, core) = 1;
	rt.idlers += IDLERS_CORE;
}

static void wake_one(void)
{
	rt.idlers += IDLERS_SEARCH;
	wake_worker(NULL);
}

static bool is_idle(unsigned core)
{
	return *mask_flag(rt.idle, core);
}

static void the_search_resumes(void **state)
{
	static const unsigned idle[] = { 5, 60, 130 };
	struct worker *w[3];

	begin_machine(NULL, 200);
	for (int i = 0; i < 3; i++) {
		w[i] = worker_new(0);
		assert_non_null(w[i]);
		make_idle(idle[i], w[i]);
	}
	/* Each is idle again before the next search. */
	for (int turn = 0; turn < 9; turn++) {
		wake_one();
		for (int i = 0; i < 3; i++)
			assert_int_equal(is_idle(idle[i]), i != turn % 3);
		make_idle(idle[turn % 3], w[turn % 3]);
	}
	end_machine();
}

static unsigned asked_for_threads(unsigned from, unsigned to)
{
	unsigned nr = 0;

	for (unsigned i = from; i < to; i++)
		nr += rt.cores[i].wants_thread;
	return nr;
}

/* 200 idle cores for which there is no worker: 64 are tried at a time. */
static void the_search_is_bounded(void **state)
{
	begin_machine(NULL, 200);
	for (unsigned i = 0; i < 200; i++)
		make_idle(i, NULL);
	wake_one();
	assert_int_equal(asked_for_threads(0, 64), 64);
	assert_int_equal(asked_for_threads(64, 200), 0);
	wake_one();
	assert_int_equal(asked_for_threads(64, 128), 64);
	assert_int_equal(asked_for_threads(128, 200), 0);
	wake_one();
	wake_one();
	assert_int_equal(asked_for_threads(128, 200), 72);
	end_machine();
}

KTEST_MAIN(KTEST(near_ones_come_first), KTEST(near_is_where_the_worker_is),
	   KTEST(side_by_side_they_rob_different_ones),
	   KTEST(any_machine_has_an_order), KTEST(the_search_resumes),
	   KTEST(the_search_is_bounded))
