// SPDX-License-Identifier: GPL-2.0-only
/*
 * What clients call to do a job and wait for it.
 *
 * Behaves badly when there is no memory for the table of ranges of
 * ktask_run_numa(): the caller then does one range after another, alone.
 */
#include <linux/export.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "kernel/engine/kernel_job.h"
#include "kernel/stats.h"

/* The end of a range that has succeeded, which only the iterator can tell. */
static void *end_of(const struct ktask_node *node, const struct ktask_ctl *ctl)
{
	ktask_iter_func iter =
		ctl->iter_func ? ctl->iter_func : ktask_iter_range;

	return iter(node->start, node->task_size);
}

/*
 * Nobody can help with a single chunk, and it is never undone.  So it is done without a job,
 * which saves a tenth of the time in which a page of 2 MiB is cleared.
 */
static bool is_one_chunk(const struct ktask_node *node,
			 const struct ktask_ctl *ctl)
{
	return node->task_size && node->task_size <= ctl->min_chunk_size &&
	       !ctl->result && !ctl->deadline_ns;
}

static int run_one_chunk(const struct ktask_node *node,
			 const struct ktask_ctl *ctl)
{
	int error = job_check_each(node, 1, ctl);

	if (error)
		return error;
	if ((ctl->flags & KTASK_KILLABLE) && fatal_signal_pending(current))
		error = -EINTR;
	else
		error = ctl->thread_func(node->start, end_of(node, ctl),
					 ctl->func_arg);
	stats_add(STAT_ALONE, 1);
	stats_add(STAT_FAILED, error != 0);
	stats_add(STAT_CHUNKS, !error);
	stats_add(STAT_UNITS, error ? 0 : node->task_size);
	return error;
}

/* Not inlined, because a struct kernel_job on the stack is large. */
static noinline int run_ranges(struct kt_range *ranges,
			       const struct ktask_node *nodes, size_t nr_nodes,
			       const struct ktask_ctl *ctl)
{
	struct kernel_job job;
	int error = job_init(&job, ranges, nodes, nr_nodes, ctl);

	if (error)
		return error;
	job_stop_if_killed(&job);
	job_begin(&job, false);
	job_work(&job);
	return job_end(&job);
}

/**
 * ktask_run - do a job with the caller and helpers, and wait for it
 * @start: first position
 * @task_size: units of work; 0 does nothing and succeeds
 * @ctl: how to do it
 *
 * Context: process context; may sleep; any lock under which one may sleep.
 *
 * Return: 0; what a chunk returned, the first error in time; -EINVAL before
 * anything ran: no thread function, minimum chunk 0, alignment not a power of
 * two, unknown flags, a range that runs past the end of the address space;
 * -ETIMEDOUT after the deadline; -EINTR if killed and KTASK_KILLABLE.
 */
int ktask_run(void *start, size_t task_size, const struct ktask_ctl *ctl)
{
	struct ktask_node any = { start, task_size, NUMA_NO_NODE };
	struct kt_range range;
	int error = job_check(ctl, &any, 1);

	if (error)
		return error;
	if (is_one_chunk(&any, ctl))
		return run_one_chunk(&any, ctl);
	return run_ranges(&range, &any, 1, ctl);
}
EXPORT_SYMBOL_GPL(ktask_run);

static void add_result(struct ktask_result *sum, const struct ktask_result *r)
{
	sum->error = r->error;
	sum->fail_error = r->fail_error;
	sum->fail_pos = r->fail_pos;
	sum->threads = max(sum->threads, r->threads);
	sum->helpers_lent += r->helpers_lent;
	sum->chunks += r->chunks;
	sum->remote_chunks += r->remote_chunks;
	sum->units += r->units;
	sum->wall_ns += r->wall_ns;
}

static void undo_ranges(const struct ktask_node *nodes, size_t nr,
			const struct ktask_ctl *ctl)
{
	size_t i;

	for (i = 0; ctl->undo_func && i < nr; i++)
		if (nodes[i].task_size)
			ctl->undo_func(nodes[i].start, end_of(&nodes[i], ctl),
				       ctl->func_arg);
}

/* Without memory for a table: one range after another. */
static noinline int run_one_by_one(const struct ktask_node *nodes,
				   size_t nr_nodes, const struct ktask_ctl *ctl)
{
	u64 start_ns = kt_now_ns();
	struct ktask_result sum = {}, one;
	struct ktask_ctl each = *ctl;
	/* Nothing runs if one of them is malformed. */
	int error = job_check_each(nodes, nr_nodes, ctl);
	size_t i;

	if (error)
		return error;
	each.result = &one;
	for (i = 0; i < nr_nodes; i++) {
		u64 past_ns = kt_now_ns() - start_ns;

		/* 0 would mean no deadline; one of 1 ns has passed at once. */
		if (ctl->deadline_ns)
			each.deadline_ns = ctl->deadline_ns > past_ns
						   ? ctl->deadline_ns - past_ns
						   : 1;
		error = ktask_run(nodes[i].start, nodes[i].task_size, &each);
		add_result(&sum, &one);
		if (error)
			break;
	}
	/* The job of range i has undone its own chunks. */
	if (error)
		undo_ranges(nodes, i, ctl);
	if (ctl->result)
		*ctl->result = sum;
	return error;
}

/**
 * ktask_run_numa - ktask_run() over ranges that belong to nodes
 * @nodes: the ranges; several may name the same node
 * @nr_nodes: how many
 * @ctl: how to do it
 *
 * A thread takes chunks of its own node first, then of the nearest node that
 * has work left.
 *
 * Context: as ktask_run().
 *
 * Return: as ktask_run(); -EINVAL also for a node below NUMA_NO_NODE.
 */
int ktask_run_numa(const struct ktask_node *nodes, size_t nr_nodes,
		   const struct ktask_ctl *ctl)
{
	int error = job_check(ctl, nodes, nr_nodes);
	struct kt_range *ranges;

	if (error)
		return error;
	if (nr_nodes == 1 && is_one_chunk(nodes, ctl))
		return run_one_chunk(nodes, ctl);
	/* Never into reclaim: the caller may hold locks that it takes. */
	ranges = kmalloc_array(max_t(size_t, nr_nodes, 1), sizeof(*ranges),
			       GFP_NOWAIT | __GFP_NOWARN);
	if (!ranges)
		return run_one_by_one(nodes, nr_nodes, ctl);
	error = run_ranges(ranges, nodes, nr_nodes, ctl);
	kfree(ranges);
	return error;
}
EXPORT_SYMBOL_GPL(ktask_run_numa);

/**
 * ktask_iter_range - the default iterator: positions are addresses
 * @position: where the next chunk starts
 * @size: bytes that the chunk shall have
 *
 * Context: any.
 *
 * Return: the address @size bytes further.
 */
void *ktask_iter_range(void *position, size_t size)
{
	return (char *)position + size;
}
EXPORT_SYMBOL_GPL(ktask_iter_range);
