/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A machine that says that it has so many NUMA nodes, of which the last ones have the CPUs
 * that the test may use, one each, as far as half of the nodes reach; the others have none.
 */
#ifndef RUNTIME_TEST_MADE_UP_NODES_H
#define RUNTIME_TEST_MADE_UP_NODES_H

#include "ktest.h"

#include <sched.h>

#include "runtime/cpu_topology.h"
#include "tree.h"

#define MADE_UP_NODES_MAX 64

static struct tree made_up_tree;

/* With the CPUs [first, last]; none: @first is -1. */
static inline void made_up_node(unsigned node, unsigned nr, int first, int last)
{
	char path[128], text[MADE_UP_NODES_MAX * 4] = "";

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist",
		 node);
	if (first >= 0)
		snprintf(text, sizeof(text), "%d-%d", first, last);
	tree_put(&made_up_tree, path, text);
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/distance",
		 node);
	*text = '\0';
	for (unsigned i = 0; i < nr; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%d ", i == node ? 10 : 20);
	tree_put(&made_up_tree, path, text);
}

/* made_up_nodes_begin - the lowest of the nodes with CPUs has those, too, for which there
 * is no node */
static inline void made_up_nodes_begin(unsigned nr)
{
	int of_node[MADE_UP_NODES_MAX];
	unsigned node = nr;
	char online[16];
	cpu_set_t cpus;

	tree_begin(&made_up_tree);
	memset(of_node, -1, sizeof(of_node));
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && node > nr / 2; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			of_node[--node] = cpu;
	for (unsigned i = 0; i < nr; i++)
		made_up_node(i, nr, of_node[i],
			     i == node ? CPU_SETSIZE : of_node[i]);
	snprintf(online, sizeof(online), "0-%u", nr - 1);
	tree_put(&made_up_tree, "/sys/devices/system/node/online", online);
	topology_root = made_up_tree.root;
}

static inline void made_up_nodes_end(void)
{
	topology_root = "";
	tree_end(&made_up_tree);
}

#endif /* RUNTIME_TEST_MADE_UP_NODES_H */
