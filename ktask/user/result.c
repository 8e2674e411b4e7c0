/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Result: what a job did and cost, written to the caller's structure, which may be of an
 * older or newer version.
 */
#include "core/undo.h"
#include "user/user_job.h"
#include "common/struct_size.h"

static struct ktask_node_result *node_result(struct ktask_result *result,
					     int nid)
{
	struct ktask_node_result *entry;

	for (unsigned i = 0; i < result->nr_nodes; i++)
		if (result->nodes[i].nid == nid)
			return &result->nodes[i];
	/* Past the last entry, nodes are added up in it. */
	if (result->nr_nodes == KTASK_RESULT_NODES)
		return &result->nodes[KTASK_RESULT_NODES - 1];
	entry = &result->nodes[result->nr_nodes++];
	entry->nid = nid;
	return entry;
}

/* Units of range @range that were claimed and did not succeed. */
static uint64_t failed_units(struct user_job *job, unsigned range)
{
	uint64_t units = 0;

	for (unsigned i = 0; i < kt_context_nr_workers(&job->ctx); i++) {
		const struct kt_worker *worker =
			kt_context_worker_at(&job->ctx, i);

		if (worker->failed && worker->range == range)
			units += worker->fail.to - worker->fail.from;
	}
	return units;
}

static void fill_nodes(struct ktask_result *result, struct user_job *job)
{
	for (unsigned i = 0; i < job->ctx.job.nr_ranges; i++) {
		const struct kt_range *range = &job->ranges[i];
		struct ktask_node_result *entry =
			node_result(result, range->node);

		entry->chunks += range->chunks;
		entry->units += range->next - failed_units(job, i);
		entry->remote_chunks += range->remote_chunks;
	}
}

static void fill_failure(struct ktask_result *result, struct user_job *job)
{
	const struct kt_worker *worker =
		kt_undo_lowest(kt_context_worker_at, &job->ctx,
			       kt_context_nr_workers(&job->ctx));

	if (!worker)
		return;
	result->fail_error = worker->error;
	result->fail_pos =
		worker->fail_pos ? worker->fail_pos : worker->fail.start;
	result->fail_range = worker->range;
	result->fail_offset = (size_t)worker->fail.from;
	if (!job->ctx.job.iter)
		result->fail_offset =
			(size_t)((char *)result->fail_pos -
				 (char *)job->ranges[worker->range].start);
}

/* The clocks of two CPUs may differ by a little. */
static uint64_t elapsed_ns(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

void job_result(struct ktask_result *result, struct user_job *job, int error)
{
	struct ktask_result full = { 0 };

	full.error = error;
	full.threads = job->ctx.threads;
	full.helpers_lent = job->ctx.lent;
	full.chunks = job->ctx.chunks;
	full.units = job->ctx.units;
	full.wall_ns = elapsed_ns(job->ctx.start_ns, job->ctx.end_ns);
	full.cpu_ns = job->ctx.caller_cpu_ns + job->ctx.helper_cpu_ns;
	full.tail_ns = elapsed_ns(job->ctx.work_end_ns, job->ctx.end_ns);
	full.largest_chunk = job->ctx.largest_chunk;
	/* The child of a fork does not have all workers. */
	if (!job->ctx.orphan) {
		fill_nodes(&full, job);
		fill_failure(&full, job);
	}
	struct_size_write(result, &full, sizeof(full));
}
