/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel host keeps for each work item; see engine/host.h. */
#ifndef KTASK_HOST_H
#define KTASK_HOST_H

#include "kmod/pool.h"

/* With retpolines an empty job took 1.2 times as long through pointers. */
#define KT_HOST_BOUND

struct kt_host_item {
	struct pool_item pooled;
	struct helper *worker; /* of the caller's process, for it; or NULL */
	struct kt_cap *node_cap; /* held, or NULL */
	int cpu; /* promised to its helper until that begins; -1 none */
};

#endif /* KTASK_HOST_H */
