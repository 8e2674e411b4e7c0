/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Computing threads, one for each CPU, beside as many of SCHED_IDLE: which part of what
 * both do is theirs.  A low thread is the least that a helper of ktask could be, without
 * what ktask itself does to stay out of the way.
 *
 * Both are counted in one window, so that what else a machine does takes from both.
 */
#include <errno.h>

#include "bench/common/clock.h"
#include "computing.h"
#include "loads.h"

#define WINDOW_NS 1500000000

static double normal_share(const struct computing *normal,
			   const struct computing *low)
{
	uint64_t nr_normal = computing_done(normal);
	uint64_t nr_low = computing_done(low);

	clock_pause_ns(WINDOW_NS);
	nr_normal = computing_done(normal) - nr_normal;
	nr_low = computing_done(low) - nr_low;
	return (double)nr_normal / (double)(nr_normal + nr_low);
}

int share_run(const struct turn *turn)
{
	struct computing *normal = computing_start(turn->cpus, false);
	struct computing *low = computing_start(turn->cpus, true);
	int error = normal && low ? 0 : errno;

	if (!error)
		report_value(turn, "computing beside SCHED_IDLE", "kept",
			     normal_share(normal, low));
	computing_stop(low);
	computing_stop(normal);
	return error;
}
