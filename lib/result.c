/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Result: what a run did and cost, in the caller's structure, of whatever
 * version that is.
 */
#include <string.h>

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

static void fill_nodes(struct ktask_result *result, const struct run *run)
{
	for (unsigned i = 0; i < run->job.nr_ranges; i++) {
		const struct kt_range *range = &run->ranges[i];
		struct ktask_node_result *slot = node_slot(result, range->node);

		slot->chunks += range->chunks;
		slot->units += range->next;
		slot->remote_chunks += range->remote_chunks;
		slot->threads += range->threads;
	}
}

void result_fill(struct ktask_result *result, struct run *run, int error)
{
	struct ktask_result full = { .struct_size = result->struct_size };

	full.error = error;
	full.threads = run->threads;
	full.helpers_lent = run->lent;
	full.chunks = run->chunks;
	full.units = run->units;
	full.wall_ns = run->end_ns - run->start_ns;
	full.cpu_ns = run->caller_cpu_ns + run->helper_cpu_ns;
	full.tail_ns = run->end_ns - run->work_end_ns;
	fill_nodes(&full, run);
	memcpy(result, &full, KT_MIN(result->struct_size, sizeof(full)));
}
