/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Caps: how many helpers may run, and who holds a permit.
 *
 * A cap is a counter with a limit.  A helper of a job holds one permit of each of
 * three caps: the budget of the job, which nested jobs share, the cap of its node,
 * and that of the machine.  The caller is never counted.
 *
 * Locking: none.  ->used is written by any thread, by kt_cas() and kt_add(); ->limit by
 * whoever owns the cap, at any time, and read by kt_load().
 */
#ifndef KTASK_CORE_CAPS_H
#define KTASK_CORE_CAPS_H

#include "core/deps.h"

struct kt_cap {
	KT_CACHE_ALIGNED uint32_t used;
	uint32_t limit;
};

/*
 * kt_cap_limit - helpers that @percent of @cpus allows
 *
 * Rounded down, but at least one helper if there are two CPUs.  At most all CPUs but
 * one, which is left to the caller.  At 80 %: 1 -> 0, 2 -> 1, 4 -> 3, 96 -> 76.
 * 0 percent allows none.
 */
unsigned kt_cap_limit(unsigned cpus, unsigned percent);

/*
 * kt_cap_node_limit - helpers that @percent of the @cpus of one node allows
 *
 * The caller is on one node only, and the machine's limit leaves a CPU for it.  So a
 * node may be full: 1 -> 1, 2 -> 1, 4 -> 3 at 80 %, and all of them at 100 %.
 */
unsigned kt_cap_node_limit(unsigned cpus, unsigned percent);

/* kt_cap_get - take a permit; false when the limit is reached */
bool kt_cap_get(struct kt_cap *cap);

/* kt_cap_put - give a permit back */
void kt_cap_put(struct kt_cap *cap);

/*
 * kt_caps_get - take permits for one helper that is wanted on a node
 * @machine: cap of all helpers
 * @node: cap of the node's helpers, or NULL for a helper of any node
 *
 * A full node does not refuse the helper, it only unbinds it; a full machine
 * refuses it.
 *
 * Return: 1 bound to the node, 0 any node, -EAGAIN refused.
 */
int kt_caps_get(struct kt_cap *machine, struct kt_cap *node);

#endif /* KTASK_CORE_CAPS_H */
