// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranges that belong to nodes.
 */
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "test.h"

#define PER_NODE 200

/* A range on each node, memory-only and CPU-only ones as well, and one on a
 * node that does not exist. */
static int deal(struct board *board, struct ktask_node *nodes,
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
		error = nodes ? deal(&board, nodes, &result) : -ENOMEM;
	board_free(&board);
	kfree(nodes);
	return error;
}

struct locality {
	struct task_struct *caller;
	atomic_t local, remote; /* chunks of helpers, by where they ran */
};

/* Positions tell the node: nid * PER_NODE + 1 and on. */
static int locality_chunk(void *start, void *end, void *arg)
{
	struct locality *locality = arg;
	int nid = ((uintptr_t)start - 1) / PER_NODE;

	if (current != locality->caller) {
		if (numa_node_id() == nid)
			atomic_inc(&locality->local);
		else
			atomic_inc(&locality->remote);
	}
	schedule_timeout_uninterruptible(1);
	return 0;
}

/* A helper is bound to the node whose range it begins with; it goes to
 * another only when that range is used up. */
static int helpers_begin_on_their_node(void)
{
	struct locality locality = { .caller = current };
	DEFINE_KTASK_CTL(ctl, locality_chunk, &locality, 1);
	struct ktask_node nodes[8];
	unsigned int nr = 0;
	int nid, round;

	if (num_node_state(N_CPU) < 2)
		return test_skip("fewer than two nodes have CPUs");
	for_each_node_state(nid, N_CPU) if (nr < ARRAY_SIZE(nodes))
		nodes[nr++] = (struct ktask_node){
			board_at(nid * PER_NODE),
			PER_NODE,
			nid,
		};
	for (round = 0; round < 3; round++)
		expect(!ktask_run_numa(nodes, nr, &ctl));
	expect(atomic_read(&locality.local) > 0);
	expect(atomic_read(&locality.local) > atomic_read(&locality.remote));
	return 0;
}

const struct test numa_tests[] = {
	{ "ranges-of-all-nodes-are-done", ranges_of_all_nodes_are_done },
	{ "helpers-begin-on-their-node", helpers_begin_on_their_node },
	{}
};
