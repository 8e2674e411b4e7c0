/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The JSON object of `ktask bench`: the figures of the table, and all samples,
 * so that others can judge them by other means.
 */
#include <stdlib.h>

#include "bench.h"
#include "cli/ui/text.h"

static json_t *interval_json(const struct ratio *ratio)
{
	if (ratio->confidence == 0)
		return json_null();
	return json_pack("{s:f s:f s:f}", "low", ratio->low, "high",
			 ratio->high, "confidence", ratio->confidence);
}

static json_t *samples_json(const struct bench_row *row)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < row->nr; i++)
		json_array_append_new(array, json_real(row->seconds[i]));
	return array;
}

static json_t *row_json(const struct bench_figures *figures, bool first)
{
	const struct bench_row *row = figures->row;
	const struct stats *seconds = &figures->seconds;
	json_t *json;

	json = json_pack(
		"{s:{s:f s:f s:f s:f} s:f s:o s:b s:f s:i s:o}", "seconds",
		"least", seconds->least, "median", seconds->median, "mean",
		seconds->mean, "stddev_pct", seconds->stddev_pct, "speedup",
		figures->speedup.median, "interval",
		first ? json_null() : interval_json(&figures->speedup),
		"agreed", figures->shown, "cpu_seconds", figures->cpu_seconds,
		"runs", row->nr, "samples", samples_json(row));
	if (row->command) {
		json_object_set_new(json, "name", text_json(row->name));
		json_object_set_new(json, "command", text_json(row->command));
		return json;
	}
	json_object_update_new(
		json, json_pack("{s:i s:i s:f s:f}", "threads", row->threads,
				"threads_used", row->threads_used, "gb_per_s",
				figures->gb_per_s, "job_cpu_seconds",
				figures->job_cpu_seconds));
	return json;
}

static json_t *memory_json(const struct bench *bench)
{
	const struct renewal *renewal = &bench->renewal;

	return json_pack("{s:i s:i s:f s:i}", "touches_before_runs",
			 renewal->runs, "slow_touches", renewal->slow_runs,
			 "worst_factor", renewal_factor(renewal),
			 "repeated_runs", bench->repeated_runs);
}

static json_t *limits_json(const struct bench *bench)
{
	if (bench->runs)
		return json_pack("{s:i}", "runs", bench->runs);
	return json_pack("{s:f s:f}", "precision_pct", 100 * bench->precision,
			 "max_seconds", bench->max_seconds);
}

/* CPUs that were used; null: nobody knows. */
static json_t *load_json(const struct bench *bench, double cpus)
{
	return bench->load_unknown ? json_null() : json_real(cpus);
}

json_t *bench_json(const struct bench *bench)
{
	json_t *rows = json_array();
	unsigned nr;
	struct bench_figures *figures = bench_figures_of(bench, &nr);

	for (unsigned i = 0; i < nr; i++)
		json_array_append_new(rows, row_json(&figures[i], i == 0));
	free(figures);
	return json_pack("{s:s s:I s:o s:b s:f s:o s:o s:o s:o s:o}",
			 "benchmark", bench->work.name, "size_bytes",
			 (json_int_t)bench->size_bytes, "limits",
			 limits_json(bench), "settled", bench->settled,
			 "seconds", bench->seconds, "others_cpus",
			 load_json(bench, bench->others_cpus), "stolen_cpus",
			 load_json(bench, bench->stolen_cpus),
			 "memory_taken_back", memory_json(bench), "machine",
			 machine_json(&bench->machine), "rows", rows);
}
