/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The CPUs that helpers of a job may use, node by node.
 */
#ifndef KTASK_USER_JOB_CPUS_H
#define KTASK_USER_JOB_CPUS_H

#include "user/user_job.h"
#include "user/machine/topo.h"

/* Of a machine with several nodes; by dense index. */
struct job_nodes {
	int here; /* id of the node that the caller was on */
	unsigned nr_cpus[TOPO_NODES_MAX]; /* that helpers may use */
	struct kt_placement_capacity capacities[TOPO_NODES_MAX];
	struct kt_cpus cpus[]; /* where nr_cpus is 0: not valid */
};

/*
 * job_cpus_begin - set the CPUs for helpers, from job->affinity
 *
 * Return: the most threads that the job's own mask has CPUs for.
 */
unsigned job_cpus_begin(struct user_job *job);

/* job_cpus_split - split them by nodes and cores, for a job with helpers */
void job_cpus_split(struct user_job *job);

/*
 * job_cpus_refresh - check whether the caller's CPUs or the machine have changed
 *
 * If they have, helpers that were submitted before leave after their chunk.
 *
 * Return: true if they have changed.
 */
bool job_cpus_refresh(struct user_job *job, uint64_t now_ns);

/*
 * job_cpus_node - the node whose CPUs serve @range
 *
 * Return: dense index; -1 for any.
 */
int job_cpus_node(const struct user_job *job, unsigned range, unsigned turn);

/* job_cpus_place_item - fill in the CPUs of an item whose permits are held */
void job_cpus_place_item(const struct user_job *job, struct kt_item *item);

#endif /* KTASK_USER_JOB_CPUS_H */
