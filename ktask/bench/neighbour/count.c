/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The number of threads that a job finds by itself against every fixed one, on
 * a machine without neighbours.
 *
 * The engine may choose among as many as there are CPUs; told so, it keeps
 * nothing that it learns, and so each job begins without knowing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/backing.h"
#include "bench/common/clock.h"
#include "bench/common/stats.h"
#include "parts.h"
#include "table.h"
#include "work.h"

#define MAX_COUNTS 16
/* Helpers of the job before fall asleep. */
#define PAUSE_NS 2000000
/* Jobs shall be long enough to adapt in. */
#define SIZE_FACTOR 4

struct series {
	struct count count;
	double *seconds;
	double median;
};

/* 1, 2, 4 .. and all of them; the last entry adapts. */
static unsigned make_counts(const struct settings *set, struct series *all)
{
	unsigned nr = 0;

	for (unsigned n = 1; n < set->cpus && nr < MAX_COUNTS - 2; n *= 2)
		all[nr++].count = (struct count){ n, true };
	all[nr++].count = (struct count){ set->cpus, true };
	all[nr++].count = (struct count){ set->cpus, false };
	return nr;
}

static int one_round(const struct settings *set, const struct work *work,
		     struct series *all, unsigned nr, int round)
{
	for (unsigned turn = 0; turn < nr; turn++) {
		struct series *series = &all[(turn + (unsigned)round + 1) % nr];
		struct outcome outcome;
		int error;

		if (work->thp_advice)
			backing_renew(SIZE_FACTOR * set->size_bytes,
				      work->thp_advice);
		clock_pause_ns(PAUSE_NS);
		error = work->run(work, series->count, &outcome);
		if (error)
			return error;
		if (round >= 0)
			series->seconds[round] = outcome.seconds;
	}
	return 0;
}

static double median_of(const double *samples, unsigned nr)
{
	double *copy = stats_copy(samples, nr);
	double median = stats_of(copy, nr).median;

	free(copy);
	return median;
}

static void add_row(const struct settings *set, const struct work *work,
		    struct series *all, unsigned nr)
{
	const struct series *adapts = &all[nr - 1], *best = all;
	json_t *row = json_pack("{s:s}", "work", work->name);
	char key[32];

	for (unsigned i = 0; i < nr; i++) {
		all[i].median = median_of(all[i].seconds, set->rounds);
		if (i + 1 < nr && all[i].median < best->median)
			best = &all[i];
		snprintf(key, sizeof(key), "fixed_%u_ms", all[i].count.threads);
		json_object_set_new(row, i + 1 < nr ? key : "adaptive_ms",
				    json_real(1e3 * all[i].median));
	}
	json_object_set_new(row, "best",
			    json_integer((json_int_t)best->count.threads));
	json_object_set_new(
		row, "of_best",
		json_real(median_ratio(best->seconds, adapts->seconds,
				       set->rounds)));
	table_add(row);
}

static int one_work(const struct settings *set, const struct work *work)
{
	double *results = calloc(MAX_COUNTS * set->rounds, sizeof(*results));
	struct series all[MAX_COUNTS];
	unsigned nr = make_counts(set, all);
	int error = 0;

	if (!results)
		return ENOMEM;
	for (unsigned i = 0; i < nr; i++)
		all[i].seconds = results + i * set->rounds;
	for (int round = -1; round < (int)set->rounds && !error; round++)
		error = one_round(set, work, all, nr, round);
	if (!error)
		add_row(set, work, all, nr);
	free(results);
	return error;
}

int count_run(const struct settings *set)
{
	int error = 0;

	table_begin("count", "the number of threads, fixed and found");
	works_size(SIZE_FACTOR * set->size_bytes);
	for (unsigned i = 0; i < nr_works && !error; i++)
		if (!set->only_job || strstr(works[i].name, set->only_job))
			error = one_work(set, &works[i]);
	works_size(set->size_bytes);
	return error;
}
