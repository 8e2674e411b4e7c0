/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle: CPUs that have nothing to do, for helpers to be woken on.
 */
#ifndef KTASK_KERNEL_IDLE_H
#define KTASK_KERNEL_IDLE_H

#include <linux/cpumask.h>
#include <linux/types.h>

/*
 * idle_matters - are helpers of a job of that age woken on idle CPUs only?
 * @waits: somebody works on the job, helped or not
 */
bool idle_matters(u64 age_ns, bool waits);

/*
 * idle_may - are there CPUs at all that idle_take() may try?
 *
 * Return: false if @nid has no CPU in @own and @only: a node may have only memory, or the
 * caller may not use its CPUs.
 */
bool idle_may(int nid, const struct cpumask *own, const struct cpumask *only);

/*
 * idle_take - find a CPU that idles and was promised to no other helper
 * @nid: of that node; NUMA_NO_NODE: of any
 * @own: one of these
 * @only: NULL, or also one of these
 *
 * Any context.  Tries a limited number of CPUs, and the next ones at the next call.
 *
 * Return: the CPU, which is promised until idle_put(); -1: none was found, or this kernel
 * does not tell which ones idle.
 */
int idle_take(int nid, const struct cpumask *own, const struct cpumask *only);

/* idle_put - end the promise: the helper has begun, or will not; -1 does nothing */
void idle_put(int cpu);

#endif /* KTASK_KERNEL_IDLE_H */
