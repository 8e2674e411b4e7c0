/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The machine: NUMA nodes with their CPUs and distances, cores, siblings.
 *
 * The kernel's id of a node may be any number.  Arrays here and elsewhere are indexed by
 * the dense index, never by the id.  A node keeps its index for the life of the process,
 * also while it is offline and has no CPUs.
 */
#ifndef KTASK_USER_TOPO_H
#define KTASK_USER_TOPO_H

#include "core/placement.h"
#include "util/cpus.h"

#define TOPO_NODES_MAX 64
/* How often jobs check whether CPUs or nodes went or came. */
#define TOPO_REFRESH_NS 1000000000

struct topo {
	uint64_t mark; /* topo_mark() when it was read */
	unsigned nr_cpus; /* online; at least 1 */
	unsigned nr_nodes; /* at least 1 */
	int ids[TOPO_NODES_MAX]; /* of the nodes */
	unsigned nr_node_cpus[TOPO_NODES_MAX];
	struct kt_cpus node_cpus[TOPO_NODES_MAX];
	uint16_t distance[TOPO_NODES_MAX][TOPO_NODES_MAX]; /* [from][to] */
	struct kt_cores cores; /* points into the two below */
	uint16_t core[KT_CPUS_MAX];
	struct kt_cpus slow;
};

/*
 * topo_get - the machine; loaded by the first call, never NULL
 *
 * The struct never changes and is never freed.  A machine that has changed is another
 * struct.
 */
const struct topo *topo_get(void);

/*
 * topo_nr_cpus - CPUs online, at least 1
 *
 * Without reading the rest of the machine, if nobody has asked for that yet.
 */
unsigned topo_nr_cpus(void);

/*
 * topo_refresh - check whether the machine has changed, once a second
 *
 * Return: true if topo_get() is another one now.
 */
bool topo_refresh(uint64_t now_ns);

/* topo_node_index - dense index of node @id, or -1 */
int topo_node_index(const struct topo *topo, int id);

/* topo_here - id of the node that the calling thread runs on */
int topo_here(void);

/* ---- reading; user/machine/topo_read.c ---- */

/* topo_mark - changes when CPUs or nodes come or go; above TOPO_MARK_NONE */
#define TOPO_MARK_NONE 1
uint64_t topo_mark(void);

/* topo_count_cpus - as the C library counts them, also where there is no sysfs */
unsigned topo_count_cpus(void);

/*
 * topo_read - read the machine
 * @before: what it was, so that nodes keep their indices; or NULL
 *
 * What cannot be read is taken to be one node whose CPUs are all alike.
 */
void topo_read(struct topo *topo, const struct topo *before);

#endif /* KTASK_USER_TOPO_H */
