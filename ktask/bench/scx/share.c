/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Computing threads, one for each CPU, alone and then beside as many of SCHED_IDLE: the
 * least that a helper of ktask could be, without what ktask itself does to stay out of
 * the way.
 */
#include <errno.h>

#include "bench/common/clock.h"
#include "computing.h"
#include "loads.h"

#define WINDOW_NS 600000000

static double steps_per_second(const struct computing *computing)
{
	uint64_t start_ns = clock_ns(), steps = computing_done(computing);

	clock_pause_ns(WINDOW_NS);
	steps = computing_done(computing) - steps;
	return (double)steps * 1e9 / (double)(clock_ns() - start_ns);
}

int share_run(const struct turn *turn)
{
	struct computing *normal = computing_start(turn->cpus, false), *low;
	double alone, beside;
	uint64_t nr_low;

	if (!normal)
		return errno;
	alone = steps_per_second(normal);
	low = computing_start(turn->cpus, true);
	if (!low) {
		computing_stop(normal);
		return errno;
	}
	beside = steps_per_second(normal);
	nr_low = computing_done(low);
	computing_stop(low);
	computing_stop(normal);
	report_value(turn, "compute beside SCHED_IDLE", "kept", beside / alone);
	report_value(turn, "compute beside SCHED_IDLE", "low steps",
		     (double)nr_low);
	return 0;
}
