/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the simulated host keeps for each work item; see engine/host.h. */
#ifndef KTASK_HOST_H
#define KTASK_HOST_H

#include "core/deps.h"

struct sim_helper;

struct kt_host_item {
	struct sim_helper *helper; /* it was submitted to */
	uint32_t ticket; /* of that submission */
	int node; /* index of the node whose permit is held; -1 */
	bool permits; /* are held: put without get, or twice, is found */
};

#endif /* KTASK_HOST_H */
