/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The CPUs that helpers of a job may use: those of the caller within the job's
 * mask, each node's part of them, and how many whole cores these have.
 *
 * Locking: none.  Only the thread that drives the job reads and writes this.  Helpers
 * only compare ctx->cpus_generation.  core/placement.h makes the choices.
 */
#include <sched.h>
#include <stdlib.h>

#include "user/job_cpus.h"

/* The CPU mask of the control block may be longer than ours.  Return: false if
 * it leaves no CPU for a helper. */
static bool narrow_to_job(struct user_job *job)
{
	struct kt_cpus mask = { 0 };

	memcpy(&mask, job->ctl->cpus,
	       KT_MIN(job->ctl->cpus_size, sizeof(mask)));
	return cpus_narrow(&job->cpus, &mask);
}

unsigned job_cpus_begin(struct user_job *job)
{
	job->cpus = job->affinity;
	if (!job->ctl->cpus)
		return UINT32_MAX;
	/* The caller may be on a CPU of its own. */
	return narrow_to_job(job) ? cpus_count(&job->cpus) + 1 : 1;
}

static void fill_node(struct user_job *job, unsigned i, int here)
{
	struct job_nodes *nodes = job->nodes;
	struct kt_cpus *cpus = &nodes->cpus[i];

	*cpus = job->cpus;
	nodes->nr_cpus[i] = cpus_narrow(cpus, &job->topo->node_cpus[i])
				    ? cpus_count(cpus)
				    : 0;
	kt_placement_capacity(&job->topo->cores, cpus->words, here,
			      &nodes->capacities[i]);
}

static void fill_nodes_and_cores(struct user_job *job)
{
	int here = sched_getcpu();

	kt_placement_capacity(&job->topo->cores, job->cpus.words, here,
			      &job->capacity);
	for (unsigned i = 0; job->nodes && i < job->topo->nr_nodes; i++)
		fill_node(job, i, here);
}

void job_cpus_split(struct user_job *job)
{
	unsigned nr = job->topo->nr_nodes;

	/* Without memory helpers are bound to no node. */
	if (nr > 1)
		job->nodes = malloc(sizeof(*job->nodes) +
				    nr * sizeof(job->nodes->cpus[0]));
	if (job->nodes)
		job->nodes->here = topo_here();
	if (nr > 1 || kt_placement_matters(&job->topo->cores))
		fill_nodes_and_cores(job);
}

/* Return: true if this is no longer the machine that the job began on. */
static bool machine_changed(struct user_job *job, uint64_t now_ns)
{
	limits_refresh(now_ns);
	if (job->topo == topo_get())
		return false;
	job->topo = topo_get();
	free(job->nodes);
	job->nodes = NULL;
	job_cpus_split(job);
	return true;
}

bool job_cpus_refresh(struct user_job *job, uint64_t now_ns)
{
	bool changed = machine_changed(job, now_ns);
	struct kt_cpus now;
	unsigned nr_cpus;

	if (!cpus_get_affinity(&now))
		now = job->affinity;
	if (!changed && cpus_equal(&now, &job->affinity))
		return false;
	job->affinity = now;
	nr_cpus = cpus_count(&now);
	job->nr_cpus = KT_MIN(job_cpus_begin(job), nr_cpus);
	fill_nodes_and_cores(job);
	kt_store(&job->ctx.cpus_generation, job->ctx.cpus_generation + 1);
	return true;
}

int job_cpus_node(const struct user_job *job, unsigned range, unsigned turn)
{
	const struct job_nodes *nodes = job->nodes;
	int node = job->ctx.job.ranges[range].node;
	int index;

	if (!nodes)
		return -1;
	index = kt_placement_node(node, job->topo->ids, nodes->nr_cpus,
				  job->topo->nr_nodes, turn);
	/* Memory of a range without a node is most likely on the caller's node, or will be
	 * when it is first touched. */
	if (index < 0)
		index = kt_placement_node(nodes->here, job->topo->ids,
					  nodes->nr_cpus, job->topo->nr_nodes,
					  turn);
	return index;
}

void job_cpus_place_item(const struct user_job *job, struct kt_item *item)
{
	const struct kt_host_item *host = &item->host;
	const struct kt_cap *cap =
		host->node_cap ? host->node_cap : pool_machine();
	const struct kt_placement_capacity *capacity = &job->capacity;
	struct pool_item *pool_item = &item->host.pool_item;

	pool_item->cpus = &job->cpus;
	if (host->node_cap) {
		pool_item->cpus = &job->nodes->cpus[host->node_index];
		capacity = &job->nodes->capacities[host->node_index];
	}
	pool_item->level = KT_PLACEMENT_ANY;
	/* Its own permit is among those that are used. */
	if (!item->starved && kt_placement_matters(&job->topo->cores))
		pool_item->level =
			kt_placement_level(capacity, kt_load(&cap->used) - 1);
	item->preferred = pool_item->level != KT_PLACEMENT_ANY;
}
