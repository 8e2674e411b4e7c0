/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Result: what a run did and cost, in the caller's structure, of whatever
 * version that is.
 */
#include <string.h>

#include "core/undo.h"
#include "lib/run.h"

static struct ktask_node_result *node_slot(struct ktask_result *result, int nid)
{
	struct ktask_node_result *slot;

	for (unsigned i = 0; i < result->nr_nodes; i++)
		if (result->nodes[i].nid == nid)
			return &result->nodes[i];
	/* Past the last slot, nodes are added up in it. */
	if (result->nr_nodes == KTASK_RESULT_NODES)
		return &result->nodes[KTASK_RESULT_NODES - 1];
	slot = &result->nodes[result->nr_nodes++];
	slot->nid = nid;
	return slot;
}

/* Units of range @range that were claimed and did not succeed. */
static uint64_t failed_units(struct run *run, unsigned range)
{
	uint64_t units = 0;

	for (unsigned i = 0; i < run_nr_workers(run); i++) {
		const struct kt_worker *worker = run_worker_at(run, i);

		if (worker->failed && worker->range == range)
			units += worker->fail.to - worker->fail.from;
	}
	return units;
}

static void fill_nodes(struct ktask_result *result, struct run *run)
{
	for (unsigned i = 0; i < run->job.nr_ranges; i++) {
		const struct kt_range *range = &run->ranges[i];
		struct ktask_node_result *slot = node_slot(result, range->node);

		slot->chunks += range->chunks;
		slot->units += range->next - failed_units(run, i);
		slot->remote_chunks += range->remote_chunks;
	}
}

static void fill_failure(struct ktask_result *result, struct run *run)
{
	const struct kt_worker *worker =
		kt_undo_lowest(run_worker_at, run, run_nr_workers(run));

	if (!worker)
		return;
	result->fail_error = worker->error;
	result->fail_pos =
		worker->fail_pos ? worker->fail_pos : worker->fail.start;
	result->fail_range = worker->range;
	result->fail_offset = (size_t)worker->fail.from;
	if (!run->job.iter)
		result->fail_offset =
			(size_t)((char *)result->fail_pos -
				 (char *)run->ranges[worker->range].start);
}

/* The clocks of two CPUs may differ by a little. */
static uint64_t elapsed(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

void result_fill(struct ktask_result *result, struct run *run, int error)
{
	struct ktask_result full = { .struct_size = result->struct_size };

	full.error = error;
	full.threads = run->threads;
	full.helpers_lent = run->lent;
	full.chunks = run->chunks;
	full.units = run->units;
	full.wall_ns = elapsed(run->start_ns, run->end_ns);
	full.cpu_ns = run->caller_cpu_ns + run->helper_cpu_ns;
	full.tail_ns = elapsed(run->work_end_ns, run->end_ns);
	/* In the child of a fork half of the workers are not there. */
	if (!run->orphan) {
		fill_nodes(&full, run);
		fill_failure(&full, run);
	}
	memcpy(result, &full, KT_MIN(result->struct_size, sizeof(full)));
}
