/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where the helpers of a run may go: the caller's CPUs within the job's, each
 * node's part of them, and how much room these have for whole cores.
 *
 * Only the thread that drives the run looks here; helpers just compare a
 * number.  The choices themselves are core/place.h's.
 */
#include <sched.h>
#include <stdlib.h>

#include "lib/places.h"

/* The CPU mask of the control block may be longer than ours.  Return: false if
 * it leaves no CPU for a helper. */
static bool narrow_to_job(struct run *run)
{
	struct kt_cpus mask = { 0 };

	memcpy(&mask, run->ctl->cpus,
	       KT_MIN(run->ctl->cpus_size, sizeof(mask)));
	return cpus_narrow(&run->cpus, &mask);
}

unsigned places_begin(struct run *run)
{
	run->cpus = run->affinity;
	if (!run->ctl->cpus)
		return UINT32_MAX;
	/* The caller may be on a CPU of its own. */
	return narrow_to_job(run) ? cpus_count(&run->cpus) + 1 : 1;
}

static void fill_node(struct run *run, unsigned i, int here)
{
	struct run_nodes *nodes = run->nodes;
	struct kt_cpus *cpus = &nodes->cpus[i];

	*cpus = run->cpus;
	nodes->nr_cpus[i] = cpus_narrow(cpus, &run->topo->node_cpus[i])
				    ? cpus_count(cpus)
				    : 0;
	kt_place_room(&run->topo->cores, cpus->words, here, &nodes->rooms[i]);
}

static void fill(struct run *run)
{
	int here = sched_getcpu();

	kt_place_room(&run->topo->cores, run->cpus.words, here, &run->room);
	for (unsigned i = 0; run->nodes && i < run->topo->nr_nodes; i++)
		fill_node(run, i, here);
}

void places_make(struct run *run)
{
	unsigned nr = run->topo->nr_nodes;

	/* Without memory helpers are bound to no node. */
	if (nr > 1)
		run->nodes = malloc(sizeof(*run->nodes) +
				    nr * sizeof(run->nodes->cpus[0]));
	if (run->nodes)
		run->nodes->here = topo_here();
	if (nr > 1 || kt_place_matters(&run->topo->cores))
		fill(run);
}

/* Return: true if this is no longer the machine that the run began on. */
static bool machine_changed(struct run *run, uint64_t now_ns)
{
	limits_renew(now_ns);
	if (run->topo == topo_get())
		return false;
	run->topo = topo_get();
	free(run->nodes);
	run->nodes = NULL;
	places_make(run);
	return true;
}

bool places_renew(struct run *run, uint64_t now_ns)
{
	bool changed = machine_changed(run, now_ns);
	struct kt_cpus now;
	unsigned nr_cpus;

	if (!cpus_get_affinity(&now))
		now = run->affinity;
	if (!changed && cpus_equal(&now, &run->affinity))
		return false;
	run->affinity = now;
	nr_cpus = cpus_count(&now);
	run->nr_cpus = KT_MIN(places_begin(run), nr_cpus);
	fill(run);
	kt_store(&run->places, run->places + 1);
	return true;
}

int places_node(const struct run *run, unsigned range, unsigned turn)
{
	const struct run_nodes *nodes = run->nodes;
	int node = run->job.ranges[range].node;
	int index;

	if (!nodes)
		return -1;
	index = kt_place_node(node, run->topo->ids, nodes->nr_cpus,
			      run->topo->nr_nodes, turn);
	/* What belongs to no node is the caller's own business: its memory is
	 * most likely to be here, or to come from here when first touched. */
	if (index < 0)
		index = kt_place_node(nodes->here, run->topo->ids,
				      nodes->nr_cpus, run->topo->nr_nodes,
				      turn);
	return index;
}

void places_seat(const struct run *run, struct run_seat *rs, int node)
{
	const struct kt_cap *cap = rs->node_cap ? rs->node_cap : pool_machine();
	const struct kt_place_room *room = &run->room;

	rs->seat.cpus = &run->cpus;
	if (rs->node_cap) {
		rs->seat.cpus = &run->nodes->cpus[node];
		room = &run->nodes->rooms[node];
	}
	rs->seat.level = KT_PLACE_ANY;
	/* Its own slot is among those that are used. */
	if (!rs->starved && kt_place_matters(&run->topo->cores))
		rs->seat.level = kt_place_level(room, kt_load(&cap->used) - 1);
	rs->places = run->places;
}
