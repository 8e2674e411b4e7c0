/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual time: the CPU time that a task has had, divided by its weight, on the clock
 * of a queue.
 */
#ifndef KTASK_SCX_VIRTUAL_TIME_H
#define KTASK_SCX_VIRTUAL_TIME_H

#include "scx_state.h"

#define LAG_MAX_NS 20000000ull /* at weight 100 */

static __u64 *clock_of(const struct task_struct *task, __s32 cpu)
{
	return is_bound(task) ? &state_of(cpu)->bound_clock
			      : &cache_states[cache_of(cpu)].vtime;
}

static bool is_before(__u64 a, __u64 b)
{
	return (__s64)(a - b) < 0;
}

static __u64 by_weight(const struct task_struct *task, __u64 ns)
{
	__u32 weight = task->scx.weight;

	return weight ? ns * 100 / weight : ns;
}

static __u64 clamped_vtime(const struct task_struct *task, __u64 clock)
{
	__u64 vtime = task->scx.dsq_vtime;
	__u64 latest = clock + by_weight(task, LAG_MAX_NS);

	if (is_before(vtime, clock - SLICE_NS))
		return clock - SLICE_NS;
	return is_before(latest, vtime) ? latest : vtime;
}

#endif /* KTASK_SCX_VIRTUAL_TIME_H */
