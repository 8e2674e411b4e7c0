// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranges that belong to nodes.
 */
#include <linux/jiffies.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/topology.h>

#include "test.h"

#define PER_NODE 200

/* A range on each node, memory-only and CPU-only ones as well, and one on a
 * node that does not exist. */
static int deal_ranges(struct board *board, struct ktask_node *nodes,
		       struct ktask_result *result)
{
	DEFINE_KTASK_CTL(ctl, board_chunk, board, 1);
	unsigned int nr = 0;
	int nid;

	for_each_online_node(nid)
	{
		nodes[nr].start = board_at(nr * PER_NODE);
		nodes[nr].task_size = PER_NODE;
		nodes[nr++].nid = nid;
	}
	nodes[nr].start = board_at(nr * PER_NODE);
	nodes[nr].task_size = PER_NODE;
	nodes[nr++].nid = nr_node_ids + 3;
	board->sleep_us = 300;
	ktask_ctl_set_result(&ctl, result);
	expect(!ktask_run_numa(nodes, nr, &ctl));
	expect(board_all(board, 1));
	expect(result->units == nr * PER_NODE);
	expect(result->remote_chunks <= result->chunks);
	return 0;
}

static int ranges_of_all_nodes_are_done(void)
{
	unsigned int nr = num_online_nodes() + 1;
	struct ktask_node *nodes = kcalloc(nr, sizeof(*nodes), GFP_KERNEL);
	struct ktask_result result;
	struct board board;
	int error = board_init(&board, nr * PER_NODE);

	if (!error)
		error = nodes ? deal_ranges(&board, nodes, &result) : -ENOMEM;
	board_free(&board);
	kfree(nodes);
	return error;
}

#define MANY_HELPERS 8
#define NODES_MOST 8
/* A helper that left may get another work item, on another node. */
#define MANY_ITEMS (MANY_HELPERS * 4)

/* The node of the first chunk that a thread did while it was bound to another
 * or the same, its home. */
struct first {
	struct task_struct *task;
	int home, nid;
};

struct locality {
	struct task_struct *caller;
	spinlock_t lock;
	struct first first[MANY_ITEMS];
	unsigned int nr;
	int caller_nid;
	atomic_t strays; /* chunks by helpers that may leave their node */
	atomic_t unbound; /* by helpers that are bound to no node */
	atomic_t begun[NODES_MOST]; /* units of each node */
};

/* Positions tell the node: nid * PER_NODE + 1 and on. */
static int nid_of(void *position)
{
	return ((uintptr_t)position - 1) / PER_NODE;
}

static bool is_bound(void)
{
	int nid = cpu_to_node(cpumask_first(current->cpus_ptr));

	return cpumask_subset(current->cpus_ptr, cpumask_of_node(nid));
}

/*
 * Who got its CPU only when others had claimed all of its node begins elsewhere;
 * what they have claimed they may not have begun yet.
 */
static bool is_too_late(struct locality *locality, int nid)
{
	return is_bound() && nid < NODES_MOST &&
	       atomic_read(&locality->begun[nid]) >= PER_NODE / 2;
}

static int first_nid(struct locality *locality, int nid)
{
	int home = cpu_to_node(cpumask_first(current->cpus_ptr));
	unsigned int i;

	if (is_too_late(locality, home))
		nid = home;
	spin_lock(&locality->lock);
	for (i = 0; i < locality->nr; i++)
		if (locality->first[i].task == current &&
		    locality->first[i].home == home)
			break;
	if (i == locality->nr && i < MANY_ITEMS)
		locality->first[locality->nr++] =
			(struct first){ current, home, nid };
	if (i < MANY_ITEMS)
		nid = locality->first[i].nid;
	spin_unlock(&locality->lock);
	return nid;
}

static int locality_chunk(void *start, void *end, void *arg)
{
	struct locality *locality = arg;
	int nid = nid_of(start);

	if (nid < NODES_MOST)
		atomic_add((uintptr_t)end - (uintptr_t)start,
			   &locality->begun[nid]);
	if (current != locality->caller) {
		int first = first_nid(locality, nid);

		if (!cpumask_subset(current->cpus_ptr, cpumask_of_node(first)))
			atomic_inc(&locality->strays);
		if (!is_bound())
			atomic_inc(&locality->unbound);
	} else if (locality->caller_nid < 0) {
		locality->caller_nid = nid;
	}
	schedule_timeout_uninterruptible(1);
	return 0;
}

/* Return: the number of nodes with CPUs. */
static unsigned int ranges_of_nodes(struct ktask_node *nodes, unsigned int max)
{
	unsigned int nr = 0;
	int nid;

	for_each_node_state(nid, N_CPU) if (nr < max) nodes[nr++] =
		(struct ktask_node){
			board_at(nid * PER_NODE),
			PER_NODE,
			nid,
		};
	return nr;
}

/* So that the caller's is at every place once. */
static void rotate_nodes(struct ktask_node *nodes, unsigned int nr)
{
	struct ktask_node first = nodes[0];
	unsigned int i;

	for (i = 1; i < nr; i++)
		nodes[i - 1] = nodes[i];
	nodes[nr - 1] = first;
}

/* Jobs until one has had a helper; what is noted is the last one's. */
static int run_helped(const struct ktask_node *nodes, unsigned int nr,
		      const struct ktask_ctl *ctl, struct locality *locality)
{
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);
	int error;

	do {
		locality->nr = 0;
		locality->caller_nid = -1;
		memset(locality->begun, 0, sizeof(locality->begun));
		error = ktask_run_numa(nodes, nr, ctl);
	} while (!error && !locality->nr && time_before(jiffies, until));
	return error;
}

/* The same until the helper began on another node than the caller: where no CPU of
 * that node idled it may be given to the caller's. */
static int run_helped_elsewhere(const struct ktask_node *nodes, unsigned int nr,
				const struct ktask_ctl *ctl,
				struct locality *locality)
{
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);
	int error;

	do
		error = run_helped(nodes, nr, ctl, locality);
	while (!error && locality->nr &&
	       locality->first[0].nid == locality->caller_nid &&
	       time_before(jiffies, until));
	return error;
}

/* One helper serves another node than the caller, and of as many helpers as
 * there are nodes each is bound to the one it begins with. */
static int helpers_are_bound_to_their_node(void)
{
	struct locality locality = { .caller = current };
	DEFINE_KTASK_CTL(ctl, locality_chunk, &locality, 1);
	struct ktask_node nodes[MANY_HELPERS];
	unsigned int nr = ranges_of_nodes(nodes, ARRAY_SIZE(nodes));
	unsigned int round;

	if (nr < 2)
		return test_skip("fewer than two nodes have CPUs");
	spin_lock_init(&locality.lock);
	for (round = 0; round < 2 * nr; round++) {
		bool alone = round % 2;

		ktask_ctl_set_max_threads(&ctl, alone ? 2 : 1 + nr);
		expect(!(alone ? run_helped_elsewhere
			       : run_helped)(nodes, nr, &ctl, &locality));
		expect(locality.nr > 0);
		expect(!alone || locality.first[0].nid != locality.caller_nid);
		if (alone)
			rotate_nodes(nodes, nr);
	}
	expect(atomic_read(&locality.strays) == 0);
	return 0;
}

/*
 * A node that has most of the work and no capacity for another helper gets none while
 * there is work and capacity elsewhere.  Of two CPUs of a node one is a helper's.
 */
static int helpers_are_dealt_to_nodes_with_capacity(void)
{
	struct locality locality = { .caller = current };
	DEFINE_KTASK_CTL(ctl, locality_chunk, &locality, 1);
	struct ktask_node nodes[MANY_HELPERS];
	unsigned int nr = ranges_of_nodes(nodes, ARRAY_SIZE(nodes));
	unsigned int big;

	if (nr < 2)
		return test_skip("fewer than two nodes have CPUs");
	spin_lock_init(&locality.lock);
	ktask_ctl_set_max_threads(&ctl, 3);
	for (big = 0; big < nr; big++) {
		unsigned int i;

		for (i = 0; i < nr; i++)
			nodes[i].task_size = i == big ? PER_NODE : PER_NODE / 3;
		expect(!run_helped(nodes, nr, &ctl, &locality));
		expect(locality.nr > 0);
		expect(atomic_read(&locality.unbound) == 0);
	}
	return 0;
}

/* ---- the cap of a node ---- */

struct occupancy {
	struct task_struct *caller;
	atomic_t now, most; /* helpers in chunks at once */
	atomic_t bound[NODES_MOST], most_bound[NODES_MOST]; /* to a node */
};

static void count_entry(atomic_t *nr, atomic_t *most_ever)
{
	int now = atomic_inc_return(nr), most = atomic_read(most_ever);

	while (now > most && !atomic_try_cmpxchg(most_ever, &most, now))
		;
}

static int occupy_chunk(void *start, void *end, void *arg)
{
	int home = cpu_to_node(cpumask_first(current->cpus_ptr));
	bool bound = is_bound() && home < NODES_MOST;
	struct occupancy *here = arg;

	if (current == here->caller) {
		schedule_timeout_uninterruptible(1);
		return 0;
	}
	count_entry(&here->now, &here->most);
	if (bound)
		count_entry(&here->bound[home], &here->most_bound[home]);
	schedule_timeout_uninterruptible(2);
	if (bound)
		atomic_dec(&here->bound[home]);
	atomic_dec(&here->now);
	return 0;
}

/*
 * All the work belongs to one node, each in turn: the caller is on another one of
 * at least two.  @least: helpers at once, without which nothing is told.
 */
static int fill_nodes(struct occupancy *here, int least)
{
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);
	DEFINE_KTASK_CTL(ctl, occupy_chunk, here, 1);
	struct ktask_node nodes[MANY_HELPERS];
	unsigned int nr = ranges_of_nodes(nodes, ARRAY_SIZE(nodes)), i;

	if (nr < 2)
		return test_skip("fewer than two nodes have CPUs");
	do {
		for (i = 0; i < nr; i++)
			expect(!ktask_run_numa(&nodes[i], 1, &ctl));
	} while (atomic_read(&here->most) < least &&
		 time_before(jiffies, until));
	if (atomic_read(&here->most) < least)
		return test_skip("too few helpers at once");
	return 0;
}

/* 80 %, rounded down, and one at least. */
static int a_node_has_no_more_helpers_than_its_cap(void)
{
	struct occupancy here = { .caller = current };
	int error = fill_nodes(&here, 2), nid;

	if (error)
		return error;
	for (nid = 0; nid < NODES_MOST && nid < nr_node_ids; nid++) {
		int cpus = cpumask_weight(cpumask_of_node(nid));

		expect(atomic_read(&here.most_bound[nid]) <=
		       max(cpus * 80 / 100, 1));
	}
	return 0;
}

/* While the cap is 0. */
static int helpers_are_bound_to_no_node(void)
{
	struct occupancy here = { .caller = current };
	int error = fill_nodes(&here, 1), nid;

	if (error)
		return error;
	for (nid = 0; nid < NODES_MOST; nid++)
		expect(atomic_read(&here.most_bound[nid]) == 0);
	return 0;
}

/*
 * All CPUs but the last two are busy, of which the caller has one: the helper goes to
 * the other's node, or the same, whichever range it was dealt.
 */
static int helped_where_a_cpu_idles(void)
{
	struct locality locality = { .caller = current };
	DEFINE_KTASK_CTL(ctl, locality_chunk, &locality, 1);
	struct ktask_node nodes[MANY_HELPERS];
	unsigned int nr = ranges_of_nodes(nodes, ARRAY_SIZE(nodes));
	unsigned int i, last = cpumask_last(cpu_online_mask);

	if (nr < 2)
		return test_skip("fewer than two nodes have CPUs");
	spin_lock_init(&locality.lock);
	ktask_ctl_set_max_threads(&ctl, 2);
	expect(!run_helped(nodes, nr, &ctl, &locality));
	expect(locality.nr > 0);
	for (i = 0; i < locality.nr; i++)
		expect(locality.first[i].home == cpu_to_node(last) ||
		       locality.first[i].home == cpu_to_node(last - 1));
	expect(atomic_read(&locality.unbound) == 0);
	return 0;
}

struct first_chunk {
	struct task_struct *caller;
	bool was, helped; /* the caller's first one was; meanwhile one helped */
	atomic_t helpers; /* chunks by helpers */
};

/* While the caller is in a chunk nobody looks for help: it was offered before. */
static int wait_for_help(void *start, void *end, void *arg)
{
	struct first_chunk *first = arg;
	unsigned long until = jiffies + msecs_to_jiffies(100);

	if (current != first->caller) {
		atomic_inc(&first->helpers);
	} else if (!first->was) {
		first->was = true;
		while (!atomic_read(&first->helpers) &&
		       time_before(jiffies, until))
			schedule_timeout_uninterruptible(1);
		first->helped = atomic_read(&first->helpers);
	}
	return 0;
}

/* Memory alone keeps no CPU busy: help comes from elsewhere, and at once. */
static int memory_alone_is_helped_at_once(void)
{
	struct first_chunk first = { .caller = current };
	DEFINE_KTASK_CTL(ctl, wait_for_help, &first, 1);
	unsigned long until = jiffies + msecs_to_jiffies(HELP_MS);
	struct ktask_node node = { board_at(0), PER_NODE, NUMA_NO_NODE };
	int nid;

	for_each_online_node(nid) if (cpumask_empty(cpumask_of_node(nid)))
		node.nid = nid;
	if (node.nid == NUMA_NO_NODE)
		return test_skip("all nodes have CPUs");
	ktask_ctl_set_max_threads(&ctl, 2);
	do {
		first.was = false;
		atomic_set(&first.helpers, 0);
		expect(!ktask_run_numa(&node, 1, &ctl));
	} while (!first.helped && time_before(jiffies, until));
	expect(first.helped);
	return 0;
}

const struct test numa_tests[] = {
	{ "ranges-of-all-nodes-are-done", ranges_of_all_nodes_are_done },
	{ "helpers-are-bound-to-their-node", helpers_are_bound_to_their_node },
	{ "helpers-are-dealt-to-nodes-that-have-capacity",
	  helpers_are_dealt_to_nodes_with_capacity },
	{ "a-node-has-no-more-helpers-than-its-cap",
	  a_node_has_no_more_helpers_than_its_cap },
	{ "+helpers-are-bound-to-no-node", helpers_are_bound_to_no_node },
	{ "+helped-where-a-cpu-idles", helped_where_a_cpu_idles },
	{ "memory-alone-is-helped-at-once", memory_alone_is_helped_at_once },
	{}
};
