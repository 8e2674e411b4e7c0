/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * No runtime: the programs with their tasks left out, by one thread.  What they take is
 * the least that any runtime takes with one.  Only these cases: see programs.h.
 */
#include "bench/tasks/cases.h"

static void start_nothing(int threads)
{
	(void)threads;
}

static void stop_nothing(void)
{
}

const struct runtime_cases cases = {
	.start = start_nothing,
	.stop = stop_nothing,
	.programs = &programs,
};
