/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What `ktask tune` prints: the curve as `ktask bench` prints it, the times of
 * a chunk, and what follows.
 */
#include <stdio.h>

#include "sample_stats.h"
#include "cli/ui/text.h"
#include "tune_command.h"

/* The engine's own, where nothing else is better: user/user_job.c. */
#define USUAL_CHUNK_US 1000

static unsigned chunk_us(const struct tune *tune)
{
	return tune->best.chunk_us ? tune->best.chunk_us : USUAL_CHUNK_US;
}

static void print_chunks(const struct bench *chunks)
{
	double usual;

	if (!chunks->nr_rows)
		return;
	usual = stats_of(chunks->rows[0].seconds, chunks->rows[0].nr).median;
	printf("\n  chunk us  speedup  average sec (± %%)\n");
	for (unsigned i = 0; i < chunks->nr_rows; i++) {
		const struct bench_row *row = &chunks->rows[i];
		struct stats stats = stats_of(row->seconds, row->nr);
		char percent[16] = "-"; /* one run has no deviation */

		if (row->nr > 1)
			snprintf(percent, sizeof(percent), "%.1f",
				 stats.stddev_pct);
		printf("  %8u %7.2fx %12.4f (±%5s)\n", row->chunk_us,
		       usual / stats.median, stats.mean, percent);
	}
}

void tune_print(const struct tune *tune)
{
	const struct ktask_autotune *best = &tune->best;

	bench_print(&tune->counts);
	print_chunks(&tune->chunks);
	printf("\nbest: %u thread%s of %u, chunks of %u us; one thread does %.2f GB/s\n",
	       best->threads, plural_suffix(best->threads), best->max_threads,
	       chunk_us(tune), best->single_rate / 1e9);
	if (!tune_load_known(tune))
		printf("what other processes did meanwhile is not known: "
		       "/proc/stat cannot be read\n");
	else if (!tune_quiet(tune))
		printf("other processes kept CPUs busy meanwhile: measure "
		       "again when the machine is idle\n");
	if (tune->path[0])
		printf("written to %s\n", tune->path);
	else
		printf("not written\n");
}

static json_t *chunks_json(const struct bench *chunks)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < chunks->nr_rows; i++) {
		const struct bench_row *row = &chunks->rows[i];
		struct stats stats = stats_of(row->seconds, row->nr);

		json_array_append_new(
			array, json_pack("{s:i s:{s:f s:f s:f}}", "chunk_us",
					 row->chunk_us, "seconds", "median",
					 stats.median, "mean", stats.mean,
					 "stddev_pct", stats.stddev_pct));
	}
	return array;
}

json_t *tune_json(const struct tune *tune)
{
	const struct ktask_autotune *best = &tune->best;
	json_t *object = bench_json(&tune->counts);

	json_object_set_new(object, "chunks", chunks_json(&tune->chunks));
	json_object_set_new(
		object, "best",
		json_pack("{s:i s:i s:i s:I s:o}", "threads", best->threads,
			  "max_threads", best->max_threads, "chunk_us",
			  chunk_us(tune), "single_bytes_per_s",
			  (json_int_t)best->single_rate, "undisturbed",
			  tune_load_known(tune) ? json_boolean(tune_quiet(tune))
						: json_null()));
	json_object_set_new(object, "written",
			    tune->path[0] ? text_json(tune->path)
					  : json_null());
	return object;
}
