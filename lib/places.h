/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Places: which CPUs the helpers of a job may use, node by node.
 */
#ifndef KTASK_LIB_PLACES_H
#define KTASK_LIB_PLACES_H

#include "lib/job.h"
#include "lib/topo.h"

/* Of a machine with several nodes; by dense index. */
struct job_nodes {
	int here; /* id of the node that the caller was on */
	unsigned nr_cpus[TOPO_NODES_MAX]; /* that helpers may use */
	struct kt_place_room rooms[TOPO_NODES_MAX];
	struct kt_cpus cpus[]; /* where nr_cpus is 0: not valid */
};

/*
 * places_begin - the CPUs for helpers, from job->affinity
 *
 * Return: the most threads that the job's own mask has CPUs for.
 */
unsigned places_begin(struct user_job *job);

/* places_make - the parts of nodes and cores, for a job that splits */
void places_make(struct user_job *job);

/*
 * places_renew - look whether the caller's CPUs or the machine have changed
 *
 * Helpers that were submitted before leave at their next chunk.
 *
 * Return: true if they have.
 */
bool places_renew(struct user_job *job, uint64_t now_ns);

/*
 * places_node - the node whose CPUs serve @range
 *
 * Return: dense index; -1 for any.
 */
int places_node(const struct user_job *job, unsigned range, unsigned turn);

/* places_item - fill in the CPUs of an item whose permits are held */
void places_item(const struct user_job *job, struct kt_item *item);

#endif /* KTASK_LIB_PLACES_H */
