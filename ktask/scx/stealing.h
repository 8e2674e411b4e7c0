/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking tasks from the queues of caches, of the CPU's own cache and of others.
 *
 * A CPU moves a task that it finds to its own local queue, from which no other CPU takes
 * it.  If two CPUs want the same task, the kernel's lock of the queue decides.
 */
#ifndef KTASK_SCX_STEALING_H
#define KTASK_SCX_STEALING_H

#include "overload_mask.h"
#include "scx_state.h"

static bool take_from_cache(enum task_class class, __u32 cache)
{
	bool has_taken =
		scx_bpf_dsq_move_to_local(QUEUE_OF_CACHE(class, cache));

	unmark_if_empty(class, cache);
	return has_taken;
}

static bool steal_from_line(enum task_class class, __u32 line, __u32 own)
{
	__u64 bits = overloaded[class][line & (LINES - 1)].bits;

	for (__u32 i = 0; i < CACHES_IN_LINE; i++) {
		__u32 cache = line * CACHES_IN_LINE + i;

		if ((bits & (1ull << i)) && cache != own &&
		    take_from_cache(class, cache))
			return true;
	}
	return false;
}

static bool steal_task(enum task_class class, __s32 cpu, __u32 own)
{
	struct cpu_state *state = state_of(cpu);
	__u32 lines = (nr_caches + CACHES_IN_LINE - 1) / CACHES_IN_LINE;

	if (steal_from_line(class, own / CACHES_IN_LINE, own))
		return true;
	for (__u32 i = 1; i < SEARCHED_LINES_MAX && i < lines; i++)
		if (steal_from_line(class, state->next_line++ % lines, own))
			return true;
	return false;
}

#endif /* KTASK_SCX_STEALING_H */
