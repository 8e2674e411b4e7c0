/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Half of the CPUs are busy with neighbours: does a job reach the speed that
 * the others allow?
 *
 * What they allow: as many threads as there are idle CPUs, the caller one of
 * them, on a machine without neighbours.  The caller's own share of a busy CPU
 * is not added: the scheduler moves it to an idle one, which helpers of the
 * lowest priority leave to it.
 */
#include <errno.h>
#include <stdlib.h>

#include "bench/common/clock.h"
#include "bench/common/stats.h"
#include "load.h"
#include "parts.h"
#include "table.h"
#include "work.h"

/* For the scheduler to see that the neighbours came, or went. */
#define PAUSE_NS 100000000

enum side { BESIDE, ALONE, ALLOWED, NR_SIDES };

static int one_job(const struct settings *set, const struct work *work,
		   enum side side, double *seconds)
{
	unsigned busy = set->cpus / 2;
	struct count counts[NR_SIDES] = {
		[BESIDE] = { set->cpus, false },
		[ALONE] = { 1, false },
		[ALLOWED] = { set->cpus - busy, true },
	};
	struct load *load = NULL;
	struct outcome outcome;
	int error;

	if (side != ALLOWED) {
		load = load_start(LOAD_CPU, busy);
		if (!load)
			return errno;
	}
	clock_pause_ns(PAUSE_NS);
	error = work->run(work, counts[side], &outcome);
	*seconds = outcome.seconds;
	load_stop(load);
	return error;
}

static int run_rounds(const struct settings *set, const struct work *work,
		      double *seconds[NR_SIDES])
{
	double none;
	int error = 0;

	for (int round = -1; round < (int)set->rounds; round++)
		for (int turn = 0; turn < NR_SIDES && !error; turn++) {
			int side = (turn + round + 1) % NR_SIDES;

			error = one_job(set, work, (enum side)side,
					round < 0 ? &none
						  : &seconds[side][round]);
		}
	return error;
}

static void add_row(const struct settings *set, const struct work *work,
		    double *seconds[NR_SIDES])
{
	unsigned nr = set->rounds;
	double of_allowed = median_ratio(seconds[ALLOWED], seconds[BESIDE], nr);
	double of_alone = median_ratio(seconds[ALONE], seconds[BESIDE], nr);

	table_add(json_pack(
		"{s:s s:i s:f s:f s:f s:f s:f}", "work", work->name,
		"idle_cpus", set->cpus - set->cpus / 2, "ktask_ms",
		1e3 * stats_of(seconds[BESIDE], nr).median, "alone_ms",
		1e3 * stats_of(seconds[ALONE], nr).median, "allowed_ms",
		1e3 * stats_of(seconds[ALLOWED], nr).median, "of_alone",
		of_alone, "of_allowed", of_allowed));
}

static int one_work(const struct settings *set, const char *name)
{
	const struct work *work = work_find(name);
	double *results = calloc(NR_SIDES * set->rounds, sizeof(*results));
	double *seconds[NR_SIDES];
	int error;

	if (!results)
		return ENOMEM;
	for (int side = 0; side < NR_SIDES; side++)
		seconds[side] = results + side * set->rounds;
	error = run_rounds(set, work, seconds);
	if (!error)
		add_row(set, work, seconds);
	free(results);
	return error;
}

int half_run(const struct settings *set)
{
	int error;

	table_begin("half", "neighbours that compute on half of the CPUs");
	error = one_work(set, "populate-4k");
	return error ? error : one_work(set, "compute-flat");
}
