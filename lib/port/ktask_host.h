/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the user-space host keeps for each work item; see engine/host.h. */
#ifndef KTASK_HOST_H
#define KTASK_HOST_H

#include "lib/pool.h"

struct kt_host_item {
	struct seat seat; /* first: the pool's helper finds its item by it */
	struct kt_cap *node_cap; /* held, or NULL */
	int node_index; /* of the node that was wanted; -1 any */
	uint32_t tid; /* of its helper, while that works; 0 */
	int permit; /* that its helper has; -1 none yet */
	uint64_t seen_cpu_ns; /* of its helper, when it should have left */
	uint64_t next_poll_ns; /* for an idle CPU, by its helper */
};

#endif /* KTASK_HOST_H */
