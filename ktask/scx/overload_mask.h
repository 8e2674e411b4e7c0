/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sparse masks: which caches have tasks that wait, and which have CPUs that run low
 * tasks.
 *
 * Locking: there is no lock.  Any CPU writes the masks, by atomic operations.
 */
#ifndef KTASK_SCX_OVERLOAD_MASK_H
#define KTASK_SCX_OVERLOAD_MASK_H

#include "scx_state.h"

static struct sparse_line *line_of(enum task_class class, __u32 cache)
{
	return &overloaded[class][(cache / CACHES_IN_LINE) & (LINES - 1)];
}

static __u64 bit_of(__u32 cache)
{
	return 1ull << (cache % CACHES_IN_LINE);
}

static void mark_overloaded(enum task_class class, __u32 cache)
{
	struct sparse_line *line = line_of(class, cache);

	if (!(line->bits & bit_of(cache)))
		__sync_fetch_and_or(&line->bits, bit_of(cache));
}

/* A task that is on its way into the queue is not seen, because the kernel inserts it after
 * ktask_enqueue() returns.  The next dispatch of a CPU of that cache marks it again. */
static void unmark_if_empty(enum task_class class, __u32 cache)
{
	__u64 queue = QUEUE_OF_CACHE(class, cache);

	if (scx_bpf_dsq_nr_queued(queue))
		return;
	__sync_fetch_and_and(&line_of(class, cache)->bits, ~bit_of(cache));
	if (scx_bpf_dsq_nr_queued(queue))
		mark_overloaded(class, cache);
}

/* ---- CPUs that run low tasks ---- */

static struct sparse_line *low_line_of(__u32 cache)
{
	return &running_low[(cache / CACHES_IN_LINE) & (LINES - 1)];
}

static void note_low_begins(__u32 cache)
{
	struct sparse_line *line = low_line_of(cache);

	__sync_fetch_and_add(&cache_states[cache].nr_low, 1);
	if (!(line->bits & bit_of(cache)))
		__sync_fetch_and_or(&line->bits, bit_of(cache));
}

/* The second check sets the bit again if a task has begun on another CPU meanwhile. */
static void note_low_ends(__u32 cache)
{
	struct sparse_line *line = low_line_of(cache);

	__sync_fetch_and_sub(&cache_states[cache].nr_low, 1);
	if (cache_states[cache].nr_low)
		return;
	__sync_fetch_and_and(&line->bits, ~bit_of(cache));
	if (cache_states[cache].nr_low)
		__sync_fetch_and_or(&line->bits, bit_of(cache));
}

#endif /* KTASK_SCX_OVERLOAD_MASK_H */
