/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All CPUs are busy with neighbours, and a job populates memory beside them,
 * again and again: what do the neighbours lose, and how long does it take?
 *
 * The sides of a round: nothing beside the neighbours; the caller alone; the
 * caller with helpers; plain threads of normal priority, one for each CPU.
 * The base line of a good neighbour is the caller alone, not silence: the
 * program runs anyway and, as a thread like others, takes its share of one CPU.
 * What ktask adds to that are its helpers.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ktask/ops.h>

#include "bench/common/backing.h"
#include "bench/common/clock.h"
#include "bench/common/stats.h"
#include "load.h"
#include "parts.h"
#include "table.h"
#include "work.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum side { NOTHING, ALONE, HELPERS, PLAIN, NR_SIDES };

static const char *const titles[NR_SIDES] = {
	[NOTHING] = "neighbours only",
	[ALONE] = "ktask, the caller alone",
	[HELPERS] = "ktask with helpers",
	[PLAIN] = "plain threads",
};

struct sample {
	double rate; /* of the neighbours, steps a second */
	double job_seconds; /* mean of the jobs */
	double tail_seconds; /* the same */
};

/* ---- plain threads ---- */

struct part {
	pthread_t thread;
	char *addr;
	size_t len;
};

static void *populate_part(void *arg)
{
	struct part *part = arg;

	(void)madvise(part->addr, part->len, MADV_POPULATE_WRITE);
	return NULL;
}

static int populate_plain(const struct settings *set, struct outcome *outcome)
{
	struct part *parts = calloc(set->cpus, sizeof(*parts));
	size_t len = set->size_bytes / set->cpus & ~(size_t)4095;
	char *addr = work_map(MADV_NOHUGEPAGE);
	uint64_t start_ns = clock_ns();
	unsigned nr;
	int error = 0;

	if (!parts || !addr)
		return ENOMEM;
	for (nr = 1; nr < set->cpus && !error; nr++) {
		parts[nr].addr = addr + nr * len;
		parts[nr].len =
			nr + 1 < set->cpus ? len : set->size_bytes - nr * len;
		error = pthread_create(&parts[nr].thread, NULL, populate_part,
				       &parts[nr]);
	}
	parts[0].addr = addr;
	parts[0].len = len;
	populate_part(&parts[0]);
	for (unsigned i = 1; i < nr - !!error; i++)
		pthread_join(parts[i].thread, NULL);
	outcome->seconds = (double)(clock_ns() - start_ns) / 1e9;
	outcome->tail_seconds = 0;
	work_unmap(addr);
	free(parts);
	return error;
}

/* ---- a window ---- */

static int one_job(const struct settings *set, enum side side,
		   struct outcome *outcome)
{
	const struct work *populate = work_find("populate-4k");
	struct count count = { side == ALONE ? 1 : set->cpus, false };

	if (side == PLAIN)
		return populate_plain(set, outcome);
	return populate->run(populate, count, outcome);
}

static int run_jobs(const struct settings *set, enum side side, uint64_t until,
		    struct sample *sample)
{
	struct outcome outcome = { 0 };
	unsigned nr = 0;
	int error = 0;

	/* A busy machine may let the window go by before it begins. */
	do {
		error = one_job(set, side, &outcome);
		sample->job_seconds += outcome.seconds;
		sample->tail_seconds += outcome.tail_seconds;
		nr++;
	} while (clock_ns() < until && !error);
	sample->job_seconds /= nr;
	sample->tail_seconds /= nr;
	return error;
}

static int run_window(const struct settings *set, const struct load *load,
		      enum side side, struct sample *sample)
{
	uint64_t start_ns, steps;
	int error = 0;

	*sample = (struct sample){ 0 };
	backing_renew(set->size_bytes, MADV_NOHUGEPAGE);
	start_ns = clock_ns();
	steps = load_done(load);
	if (side == NOTHING)
		clock_pause_ns(set->window_ns);
	else
		error = run_jobs(set, side, start_ns + set->window_ns, sample);
	steps = load_done(load) - steps;
	sample->rate = (double)steps / ((double)(clock_ns() - start_ns) / 1e9);
	return error;
}

/* ---- all of them ---- */

/* Each field of the samples, by side and round. */
struct series {
	double *rate[NR_SIDES];
	double *job[NR_SIDES];
	double *tail[NR_SIDES];
	double *results;
};

static int make_series(struct series *series, unsigned rounds)
{
	double *results = calloc(3 * NR_SIDES * rounds, sizeof(*results));

	series->results = results;
	if (!results)
		return ENOMEM;
	for (int side = 0; side < NR_SIDES; side++) {
		series->rate[side] = results + 3 * side * rounds;
		series->job[side] = results + (3 * side + 1) * rounds;
		series->tail[side] = results + (3 * side + 2) * rounds;
	}
	return 0;
}

/* Beginning with another side each time; round -1 does not count. */
static int one_round(const struct settings *set, const struct load *load,
		     struct series *series, int round)
{
	for (int turn = 0; turn < NR_SIDES; turn++) {
		int side = (turn + round + 1) % NR_SIDES;
		struct sample sample;
		int error = run_window(set, load, (enum side)side, &sample);

		if (error)
			return error;
		if (round < 0)
			continue;
		series->rate[side][round] = sample.rate;
		series->job[side][round] = sample.job_seconds;
		series->tail[side][round] = sample.tail_seconds;
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

static void add_side(const struct series *series, int side, unsigned nr,
		     const char *load)
{
	double of_silence =
		median_ratio(series->rate[side], series->rate[NOTHING], nr);
	double of_alone =
		median_ratio(series->rate[side], series->rate[ALONE], nr);
	json_t *row =
		json_pack("{s:s s:s s:o s:o}", "load", load, "beside_it",
			  titles[side], "speed", table_number(of_silence),
			  "slower_pct", table_number(100 - 100 * of_alone));

	if (side != NOTHING) {
		double job =
			median_ratio(series->job[side], series->job[ALONE], nr);

		json_object_update_new(
			row,
			json_pack("{s:f s:f s:f}", "job_ms",
				  1e3 * median_of(series->job[side], nr),
				  "job_ratio", job, "tail_ms",
				  1e3 * median_of(series->tail[side], nr)));
	} else {
		json_object_update_new(row, json_pack("{s:n s:n s:n}", "job_ms",
						      "job_ratio", "tail_ms"));
	}
	table_add(row);
}

static int one_load(const struct settings *set, enum load_kind kind,
		    const char *name)
{
	struct load *load;
	struct series series;
	int error;

	if (set->only_load && !strstr(name, set->only_load))
		return 0;
	load = load_start(kind, set->cpus);
	if (!load)
		return errno;
	error = make_series(&series, set->rounds);
	for (int round = -1; round < (int)set->rounds && !error; round++)
		error = one_round(set, load, &series, round);
	load_stop(load);
	for (int side = 0; side < NR_SIDES && !error; side++)
		add_side(&series, side, set->rounds, name);
	free(series.results);
	return error;
}

int full_run(const struct settings *set)
{
	int error;

	table_begin("full",
		    "a neighbour on every CPU while a job populates memory");
	error = one_load(set, LOAD_CPU, "cpu");
	return error ? error : one_load(set, LOAD_MEMORY, "memory");
}
