// SPDX-License-Identifier: GPL-2.0-only
/*
 * Idle: CPUs that have nothing to do, for helpers to be woken on.
 *
 * A helper that is woken beside a busy thread gets one turn of the scheduler: a tick of
 * 4 ms or more.  It is preempted in a chunk.  At the end of the job it is lent a priority,
 * and does not pay back that turn.  So nice 19 bounds what a long job takes from its
 * neighbours, but not what many short jobs take.  Nor do such helpers make short jobs any
 * faster (bench/notebook/2026-11.md).  So at first a job is helped on idle CPUs only.  A
 * job that lasts is helped on busy CPUs as well: one turn is a small part of it, and it
 * shares CPUs that are busy only with other work of the lowest priority.
 *
 * Whether a CPU idles is read from what the kernel tells RCU, one load for each CPU.
 * Modules cannot call the scheduler's own functions.  The idle time of a CPU is no
 * substitute: later kernels do not count it while the CPU's tick goes on.
 *
 * The scheduler is told which CPU was promised (helper_wake()).  Otherwise, if CPUs share
 * no cache, it may wake a helper on the caller's CPU, and moves one of the two only some
 * ticks later.
 *
 * Behaves badly where the scheduler chooses a busy CPU nevertheless.
 *
 * Locking: there is no lock.  A bit of promised_cpus belongs to whoever set it, by
 * test-and-set.  Any thread writes next_cpu: WRITE_ONCE() and READ_ONCE().
 */
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/time64.h>
#include <linux/topology.h>

#include "kernel/compat.h"
#include "kernel/engine/idle.h"

/* At most this many CPUs are tried for one helper: each costs a cache miss. */
#define TRIED_MAX 64
/* The first helper of a job that nobody waits for waits this long for an idle CPU, as
 * one of the job before may be on its way there. */
#define UNHELPED_NS (10 * NSEC_PER_MSEC)

static unsigned int only_idle_ms = 500;
module_param(only_idle_ms, uint, 0644);
MODULE_PARM_DESC(only_idle_ms, "how long a job has helpers woken on idle CPUs "
			       "only, milliseconds; 0: never");

/* A helper that has not begun yet was promised each of these CPUs. */
static struct cpumask promised_cpus;
/* Where the next search begins; it may be stale. */
static unsigned int next_cpu;

bool idle_matters(u64 age_ns, bool waits)
{
	u64 limit_ns = (u64)READ_ONCE(only_idle_ms) * NSEC_PER_MSEC;

	if (!COMPAT_TELLS_IDLE)
		return false;
	return age_ns < (waits ? limit_ns : min_t(u64, limit_ns, UNHELPED_NS));
}

static bool is_wanted(int cpu, const struct cpumask *node,
		      const struct cpumask *only)
{
	return cpu_online(cpu) && (!node || cpumask_test_cpu(cpu, node)) &&
	       (!only || cpumask_test_cpu(cpu, only));
}

static const struct cpumask *cpus_of(int nid)
{
	return nid >= 0 && nid < nr_node_ids ? cpumask_of_node(nid) : NULL;
}

bool idle_may(int nid, const struct cpumask *own, const struct cpumask *only)
{
	const struct cpumask *node = cpus_of(nid);
	int cpu;

	for_each_cpu(cpu, own)
	{
		if (is_wanted(cpu, node, only))
			return true;
	}
	return false;
}

int idle_take(int nid, const struct cpumask *own, const struct cpumask *only)
{
	const struct cpumask *node = cpus_of(nid);
	unsigned int start = READ_ONCE(next_cpu), nr_tried = 0;
	int cpu, found = -1;

	if (!COMPAT_TELLS_IDLE)
		return -1;
	for_each_cpu_wrap(cpu, own, start)
	{
		if (!is_wanted(cpu, node, only))
			continue;
		if (compat_cpu_idles(cpu) &&
		    !cpumask_test_and_set_cpu(cpu, &promised_cpus))
			found = cpu;
		if (found >= 0 || ++nr_tried == TRIED_MAX)
			break;
	}
	if (cpu < nr_cpu_ids)
		WRITE_ONCE(next_cpu, (cpu + 1) % nr_cpu_ids);
	return found;
}

void idle_put(int cpu)
{
	if (cpu >= 0)
		cpumask_clear_cpu(cpu, &promised_cpus);
}
