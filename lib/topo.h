/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * NUMA nodes: their CPUs and distances, with dense indices.
 *
 * A node id is the kernel's and may be anything; arrays here and elsewhere are
 * indexed by the dense index, never by the id.
 */
#ifndef KTASK_LIB_TOPO_H
#define KTASK_LIB_TOPO_H

#include "lib/cpus.h"

#define TOPO_NODES_MAX 64

struct topo_node {
	int id;
	unsigned nr_cpus;
	struct kt_cpus cpus;
};

struct topo {
	unsigned nr_cpus; /* online; at least 1 */
	unsigned nr_nodes; /* at least 1 */
	struct topo_node nodes[TOPO_NODES_MAX];
	uint16_t distance[TOPO_NODES_MAX][TOPO_NODES_MAX];
};

/* topo_get - the machine; loaded by the first call, never NULL */
const struct topo *topo_get(void);

/* topo_node_index - dense index of node @id, or -1 */
int topo_node_index(int id);

/* topo_here - id of the node that the calling thread runs on */
int topo_here(void);

#endif /* KTASK_LIB_TOPO_H */
