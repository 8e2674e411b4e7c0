/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Places: which CPUs the helpers of a run may use, node by node.
 */
#ifndef KTASK_LIB_PLACES_H
#define KTASK_LIB_PLACES_H

#include "lib/run.h"
#include "lib/topo.h"

/* Of a machine with several nodes; by dense index. */
struct run_nodes {
	int here; /* id of the node that the caller was on */
	unsigned nr_cpus[TOPO_NODES_MAX]; /* that helpers may use */
	struct kt_place_room rooms[TOPO_NODES_MAX];
	struct kt_cpus cpus[]; /* where nr_cpus is 0: not valid */
};

/*
 * places_begin - the CPUs for helpers, from run->affinity
 *
 * Return: the most threads that the job's own mask has CPUs for.
 */
unsigned places_begin(struct run *run);

/* places_make - the parts of nodes and cores, for a run that splits */
void places_make(struct run *run);

/*
 * places_renew - look whether the caller's CPUs or the machine have changed
 *
 * Helpers that were seated before leave at their next chunk.
 *
 * Return: true if they have.
 */
bool places_renew(struct run *run, uint64_t now_ns);

/*
 * places_node - the node whose CPUs serve @range
 *
 * Return: dense index; -1 for any.
 */
int places_node(const struct run *run, unsigned range, unsigned turn);

/* places_seat - fill in the CPUs of a seat whose slots are taken
 * @node: as places_node() said; used if rs->node_cap is held */
void places_seat(const struct run *run, struct run_seat *rs, int node);

#endif /* KTASK_LIB_PLACES_H */
