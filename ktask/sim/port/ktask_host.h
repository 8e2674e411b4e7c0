/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the simulated host keeps for each work item; see engine/host.h. */
#ifndef KTASK_HOST_H
#define KTASK_HOST_H

#include "core/deps.h"
#include "sim/sched.h"

struct sim_helper;

#define kt_cpu_time_ns() sim_cpu_time(sim_self())

struct kt_host_item {
	struct sim_helper *helper; /* it was submitted to */
	uint32_t ticket; /* of that submission */
	int node; /* index of the node whose permit is held; -1 */
	bool permits; /* are held: put without get, or twice, is found */
	bool shared; /* its helper has one of all processes' permits, */
	bool yielded; /* or had to give it up */
	uint64_t seen_cpu_ns; /* of its helper, when it should have left */
	bool worked; /* a chunk was done in it, in this job */

	/* For sim/sim_rules.c. */
	uint32_t generation; /* of the CPUs that it was submitted for */
	uint64_t submitted_ns, begun_ns;
	unsigned asked; /* to yield: the answer before; 0 not */
	unsigned starved; /* and cancelled: the answer before; 0 never */
};

#endif /* KTASK_HOST_H */
