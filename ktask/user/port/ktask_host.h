/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the user-space host keeps for each work item; see engine/host.h.
 *
 * Locking: there is no lock.
 *	M: the manager of the item's group, while no helper runs it (engine/context.h)
 *	H: the helper that runs the item
 *	A: read by any thread: kt_load() and kt_store()
 */
#ifndef KTASK_HOST_H
#define KTASK_HOST_H

#include "user/pool/user_pool.h"
#include "util/clock.h"

#define kt_cpu_time_ns() clock_ns(CLOCK_THREAD_CPUTIME_ID)

struct kt_host_item {
	struct pool_item
		pool_item; /* first: the pool's helper finds its item by it; M */
	struct kt_cap *node_cap; /* held, or NULL; M */
	int node_index; /* of the node that was wanted; -1 any; M */
	uint32_t tid; /* of its helper, while that works; 0; H, A */
	int permit; /* that its helper has; -1 none yet; H, A */
	uint32_t counted; /* among the job's helpers that have a permit; A */
	uint64_t seen_cpu_ns; /* of its helper, when it should have left; M */
	uint64_t next_poll_ns; /* for an idle CPU; H */
};

#endif /* KTASK_HOST_H */
