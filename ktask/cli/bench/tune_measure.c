/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Measuring for `ktask tune`: thread counts first, then the time of a chunk
 * with the best of them.  Every run has exactly the threads asked for.
 *
 * Each phase is measured in rounds of its own (bench_rounds.c).  A later phase also runs
 * the best count so far.  So if the machine changed its speed in between, this shows as
 * noise rather than as a gain.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tune_counts.h"
#include "cli/ui/message.h"
#include "sample_stats.h"
#include "tune_command.h"

/* Times of a chunk that are tried; the engine's own stands first. */
static const unsigned chunk_times_us[] = { 1000, 250, 500, 2000, 4000 };

#define NR_CHUNK_TIMES (sizeof(chunk_times_us) / sizeof(chunk_times_us[0]))
/* Another chunk than the usual must be so much faster, in percent. */
#define CHUNK_GAIN_PCT 3
/* More than this, kept busy by others, and the figures are not of the machine. */
#define QUIET_CPUS 0.25

static int no_memory(void)
{
	return say_error(ENOMEM, "tune: allocating the results");
}

/* A phase measures what @tune does, with rows of its own. */
static void begin_phase(struct bench *phase, const struct tune *tune)
{
	*phase = tune->counts;
	phase->fixed = true;
	phase->unpaired = false;
	phase->rows = NULL;
	phase->nr_rows = 0;
}

/* Samples of a count that was measured before join the others. */
static void merge_samples(struct bench_row *to, const struct bench_row *from)
{
	for (unsigned i = 0; i < from->nr; i++) {
		to->seconds[i] = from->seconds[i];
		to->cpu_seconds[i] = from->cpu_seconds[i];
		to->job_cpu_seconds[i] = from->job_cpu_seconds[i];
	}
	to->nr = from->nr;
}

static struct bench_row *row_of(struct bench *bench, unsigned threads)
{
	for (unsigned i = 0; i < bench->nr_rows; i++)
		if (bench->rows[i].threads == threads)
			return &bench->rows[i];
	return NULL;
}

static int by_threads(const void *a, const void *b)
{
	const struct bench_row *x = a, *y = b;

	return (x->threads > y->threads) - (x->threads < y->threads);
}

/* The newest samples of a count are compared with those of its neighbours. */
static int merge_phase(struct bench *counts, struct bench *phase)
{
	for (unsigned i = 0; i < phase->nr_rows; i++) {
		struct bench_row *from = &phase->rows[i];
		struct bench_row *to = row_of(counts, from->threads);

		if (!from->nr)
			continue;
		if (!to && bench_add_row(counts, from->threads, 0))
			return no_memory();
		if (!to)
			to = &counts->rows[counts->nr_rows - 1];
		merge_samples(to, from);
		if (from->threads_used > to->threads_used)
			to->threads_used = from->threads_used;
	}
	if (phase->others_cpus > counts->others_cpus)
		counts->others_cpus = phase->others_cpus;
	if (phase->stolen_cpus > counts->stolen_cpus)
		counts->stolen_cpus = phase->stolen_cpus;
	counts->load_unknown = phase->load_unknown;
	counts->renewal = phase->renewal;
	qsort(counts->rows, counts->nr_rows, sizeof(*counts->rows), by_threads);
	return 0;
}

static int measure_counts(struct tune *tune, const unsigned *threads,
			  unsigned nr)
{
	struct bench phase;
	int status = 0;

	begin_phase(&phase, tune);
	for (unsigned i = 0; i < nr && !status; i++)
		if (bench_add_row(&phase, threads[i], 0))
			status = no_memory();
	if (!status)
		status = bench_measure(&phase, "tune");
	if (!status)
		status = merge_phase(&tune->counts, &phase);
	bench_free(&phase);
	return status;
}

static unsigned picks_of(const struct bench *bench, struct pick picks[PICK_MAX])
{
	unsigned i;

	for (i = 0; i < bench->nr_rows && i < PICK_MAX; i++) {
		const struct bench_row *row = &bench->rows[i];

		picks[i].threads = row->threads;
		picks[i].seconds = stats_of(row->seconds, row->nr).median;
	}
	return i;
}

static int find_count(struct tune *tune, unsigned max_threads)
{
	unsigned counts[PICK_MAX + 1], nr = pick_first(max_threads, counts);
	struct pick picks[PICK_MAX];
	const struct pick *best;

	do {
		int status = measure_counts(tune, counts, nr);
		unsigned nr_picks;

		if (status)
			return status;
		nr_picks = picks_of(&tune->counts, picks);
		best = &picks[pick_best(picks, nr_picks)];
		nr = pick_next(picks, nr_picks, counts);
		counts[nr] = best->threads;
	} while (nr++);
	tune->best.threads = best->threads;
	tune->best.max_threads = max_threads;
	tune->best.single_rate =
		(uint64_t)(tune->counts.size_bytes / picks[0].seconds);
	return 0;
}

/* The usual one unless another is clearly faster. */
static unsigned best_chunk_us(const struct bench *chunks)
{
	const struct bench_row *usual = &chunks->rows[0];
	struct stats least = stats_of(usual->seconds, usual->nr);
	double bar = least.median * (1 - CHUNK_GAIN_PCT / 100.0);
	unsigned best = 0;

	for (unsigned i = 1; i < chunks->nr_rows; i++) {
		const struct bench_row *row = &chunks->rows[i];
		struct stats stats = stats_of(row->seconds, row->nr);
		double noise = stats.stddev_pct + least.stddev_pct;

		if (stats.median >= bar ||
		    stats.median >= least.median * (1 - noise / 100))
			continue;
		bar = stats.median;
		best = row->chunk_us;
	}
	return best;
}

/* One thread alone has nobody whom a long chunk holds up. */
static int find_chunk(struct tune *tune)
{
	struct bench *chunks = &tune->chunks;
	int status;

	if (tune->best.threads == 1)
		return 0;
	begin_phase(chunks, tune);
	for (unsigned i = 0; i < NR_CHUNK_TIMES; i++)
		if (bench_add_row(chunks, tune->best.threads,
				  chunk_times_us[i]))
			return no_memory();
	status = bench_measure(chunks, "tune");
	if (!status)
		tune->best.chunk_us = best_chunk_us(chunks);
	return status;
}

static bool was_quiet(const struct bench *bench)
{
	return bench->others_cpus + bench->stolen_cpus <= QUIET_CPUS;
}

bool tune_load_known(const struct tune *tune)
{
	return !tune->counts.load_unknown && !tune->chunks.load_unknown;
}

bool tune_quiet(const struct tune *tune)
{
	return was_quiet(&tune->counts) && was_quiet(&tune->chunks);
}

int tune_measure(struct tune *tune, unsigned max_threads)
{
	int status;

	tune->best = (struct ktask_autotune)KTASK_AUTOTUNE_INIT;
	snprintf(tune->best.name, sizeof(tune->best.name), "%s",
		 tune->counts.work.name);
	status = find_count(tune, max_threads);
	if (!status)
		status = find_chunk(tune);
	return status;
}

void tune_free(struct tune *tune)
{
	bench_free(&tune->counts);
	bench_free(&tune->chunks);
}
