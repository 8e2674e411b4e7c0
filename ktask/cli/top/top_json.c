/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * `ktask top --json`: the object {"jobs": [...], "permits": {...}}.
 */
#include "cli/ui/text.h"
#include "top.h"

static json_t *nodes_json(const struct top *top, const struct top_job *job)
{
	json_t *array = json_array();

	if (job && !job->seen) {
		json_decref(array);
		return json_null();
	}
	for (unsigned i = 0; i < top->nr_nodes; i++)
		json_array_append_new(
			array,
			json_pack("{s:i s:i}", "node", top->node_ids[i],
				  "helpers",
				  job ? job->nodes[i] : top_node(top, i)));
	return array;
}

static json_t *job_json(const struct top *top, const struct top_job *job)
{
	const struct ktask_job_info *info = &job->info;
	double done = info->units_total
			      ? (double)info->units_done / info->units_total
			      : 0;

	return json_pack(
		"{s:i s:I s:o s:o s:s s:I s:I s:f s:f s:f s:o s:i s:i s:o}",
		"pid", info->pid, "uid", (json_int_t)info->uid, "user",
		text_json(job->user), "operation", text_json(info->name),
		"unit", job->bytes ? "bytes" : "units", "units_done",
		(json_int_t)info->units_done, "units_total",
		(json_int_t)info->units_total, "progress",
		done > 1 ? 1.0 : done, "units_per_s", job->rate,
		"elapsed_seconds", info->elapsed_ns / 1e9, "remaining_seconds",
		info->remaining_ns ? json_real(info->remaining_ns / 1e9)
				   : json_null(),
		"helpers", info->helpers, "wanted", info->wanted, "nodes",
		nodes_json(top, job));
}

static json_t *not_seen_json(const struct top *top)
{
	json_t *array = json_array();
	char buf[128];

	for (unsigned i = 0; top_not_seen(top, i, buf); i++)
		json_array_append_new(array, json_string(buf));
	return array;
}

json_t *top_json(const struct top *top)
{
	json_t *jobs = json_array();
	unsigned i;

	for (i = 0; i < top->nr_jobs; i++)
		json_array_append_new(jobs, job_json(top, &top->jobs[i]));
	return json_pack("{s:o s:{s:i s:i s:b s:o s:o}}", "jobs", jobs,
			 "permits", "used", top->permits.used, "limit",
			 top->permits.limit, "shared", top->permits.shared,
			 "nodes", nodes_json(top, NULL), "not_seen",
			 not_seen_json(top));
}
