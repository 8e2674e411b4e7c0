/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The results as tables for people and as one JSON object.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "bench/common/machine.h"
#include "rows.h"

/* ---- what follows from the rows ---- */

static double speed_of(const struct row *row)
{
	return row->seconds.median > 0 ? 1 / row->seconds.median : 0;
}

static int is_ktask(const struct row *row)
{
	return !strncmp(row->peer, "libktask", 8);
}

/* The first row of each case is the one-threaded program. */
static const struct row *first_of(const struct results *results,
				  const struct row *row)
{
	const struct row *first = results->rows;

	while (strcmp(first->case_name, row->case_name))
		first++;
	return first;
}

static const struct row *best_peer(const struct results *results,
				   const struct row *ktask)
{
	const struct row *best = NULL;

	for (unsigned i = 0; i < results->nr_rows; i++) {
		const struct row *row = &results->rows[i];

		if (strcmp(row->case_name, ktask->case_name) || is_ktask(row) ||
		    row->threads != ktask->threads)
			continue;
		if (!best || row->seconds.median < best->seconds.median)
			best = row;
	}
	return best;
}

/* Speed against the best peer with as many threads; 0 where there is none. */
static double of_best(const struct results *results, const struct row *row)
{
	const struct row *best = best_peer(results, row);

	if (!is_ktask(row) || !best)
		return 0;
	return median_ratio(best->samples, row->samples, row->nr_samples);
}

static double speedup_of(const struct results *results, const struct row *row)
{
	return speed_of(row) / speed_of(first_of(results, row));
}

/* ---- JSON ---- */

static json_t *real_or_null(int known, double value)
{
	return known ? json_real(value) : json_null();
}

static json_t *row_json(const struct results *results, const struct row *row)
{
	return json_pack(
		"{s:s s:s s:i s:{s:f s:f s:f} s:f s:o s:f s:o s:o s:o}", "case",
		row->case_name, "peer", row->peer, "threads", row->threads,
		"seconds", "median", row->seconds.median, "mean",
		row->seconds.mean, "stddev_pct", row->seconds.stddev_pct,
		"speedup", speedup_of(results, row), "gb_per_s",
		real_or_null(row->bytes > 0,
			     (double)row->bytes / 1e9 * speed_of(row)),
		"cpu_seconds", row->cpu_seconds, "chunk",
		row->chunk
			? json_integer((json_int_t)(row->chunk_bytes
							    ? row->chunk_bytes
							    : row->chunk))
			: json_null(),
		"tail_seconds",
		real_or_null(row->tail_seconds >= 0, row->tail_seconds),
		"of_best_peer",
		real_or_null(of_best(results, row) > 0, of_best(results, row)));
}

static json_t *figure_json(const struct figure *figure)
{
	return json_pack("{s:s s:s s:f}", "name", figure->name, "peer",
			 figure->peer ? figure->peer : "libktask", "value",
			 figure->value);
}

static json_t *results_json(const struct results *results)
{
	json_t *rows = json_array(), *figures = json_array();

	for (unsigned i = 0; i < results->nr_rows; i++)
		json_array_append_new(rows,
				      row_json(results, &results->rows[i]));
	for (unsigned i = 0; i < results->nr_figures; i++)
		json_array_append_new(figures,
				      figure_json(&results->figures[i]));
	return json_pack("{s:s s:I s:i s:f s:o s:o s:o}", "benchmark", "peers",
			 "size_bytes", (json_int_t)results->size_bytes,
			 "rounds", results->rounds, "others_cpus",
			 results->others_cpus, "machine", machine_json(),
			 "rows", rows, "figures", figures);
}

int report_json(const struct results *results, const char *path)
{
	size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(6);
	json_t *object = results_json(results);
	FILE *file;
	int failed;

	if (!object)
		return ENOMEM;
	file = strcmp(path, "-") ? fopen(path, "w") : stdout;
	if (!file) {
		json_decref(object);
		return errno;
	}
	failed = json_dumpf(object, file, flags) || fputc('\n', file) < 0;
	if (file != stdout && fclose(file))
		failed = 1;
	json_decref(object);
	return failed ? EIO : 0;
}

/* ---- tables ---- */

static void print_chunk(const struct row *row)
{
	if (!row->chunk)
		printf(" %8s", "");
	else if (row->chunk_bytes)
		printf(" %4zu MiB", row->chunk_bytes >> 20);
	else
		printf(" %8zu", row->chunk);
}

static void print_row(const struct results *results, const struct row *row)
{
	printf("%-24s %3u", row->peer, row->threads);
	print_chunk(row);
	printf(" %9.2f %6.1f", 1e3 * row->seconds.median,
	       row->seconds.stddev_pct);
	if (row->bytes)
		printf(" %7.2f", (double)row->bytes / 1e9 * speed_of(row));
	else
		printf(" %7s", "");
	printf(" %9.1f %7.3f", 1e3 * row->cpu_seconds,
	       speedup_of(results, row));
	if (row->tail_seconds >= 0 && row->threads > 1)
		printf(" %9.1f %9.1f", 1e6 * row->tail_seconds,
		       1e6 * row->mean_chunk_seconds);
	putchar('\n');
}

static void print_verdict(const struct results *results, const struct row *row)
{
	const struct row *best = best_peer(results, row);

	if (!is_ktask(row) || !best)
		return;
	printf("  libktask with %u thread%s: %.3f of the speed of %s, "
	       "%.3f by rounds\n",
	       row->threads, row->threads == 1 ? "" : "s",
	       speed_of(row) / speed_of(best), best->peer,
	       of_best(results, row));
}

static void print_case(const struct results *results, const struct row *first)
{
	const char *name = first->case_name;
	unsigned end = results->nr_rows;

	printf("\n%s: %s\n", name, first->title);
	printf("%-24s %3s %8s %9s %6s %7s %9s %7s", "peer", "thr", "chunk",
	       "median ms", "+- %", "GB/s", "CPU ms", "speedup");
	if (first->tail_seconds >= 0)
		printf(" %9s %9s", "tail us", "chunk us");
	putchar('\n');
	for (unsigned i = (unsigned)(first - results->rows); i < end; i++)
		if (!strcmp(results->rows[i].case_name, name))
			print_row(results, &results->rows[i]);
	for (unsigned i = (unsigned)(first - results->rows); i < end; i++)
		if (!strcmp(results->rows[i].case_name, name))
			print_verdict(results, &results->rows[i]);
}

static void print_figures(const struct results *results)
{
	if (results->nr_figures)
		putchar('\n');
	for (unsigned i = 0; i < results->nr_figures; i++) {
		const struct figure *figure = &results->figures[i];

		printf("%-46s %-20s %10.1f %s\n", figure->title,
		       figure->peer ? figure->peer : "libktask", figure->value,
		       figure->unit);
	}
}

void report_print(const struct results *results)
{
	machine_print();
	printf("%.2f GiB of memory, %u rounds after one that does not count\n",
	       (double)results->size_bytes / (1 << 30), results->rounds);
	printf("other processes kept %.2f CPUs busy meanwhile\n",
	       results->others_cpus);
	for (unsigned i = 0; i < results->nr_rows; i++)
		if (first_of(results, &results->rows[i]) == &results->rows[i])
			print_case(results, &results->rows[i]);
	print_figures(results);
}
