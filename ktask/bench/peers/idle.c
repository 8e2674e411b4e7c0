/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Runs bench/idle/pool.c, a program of its own: what a pool keeps in memory
 * is the difference within a process that did nothing else.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "rounds.h"

int idle_run(struct results *results, const char *program)
{
	unsigned long bytes = 0, stack_bytes = 0;
	unsigned helpers = 0;
	FILE *pipe;
	int nr;

	if (!program)
		return 0;
	pipe = popen(program, "r");
	if (!pipe)
		return errno;
	nr = fscanf(pipe, "%u %lu %lu", &helpers, &bytes, &stack_bytes);
	if (pclose(pipe) || nr != 3)
		return EIO;
	results_figure(results, "idle_pool_helpers", "idle pool: helpers", NULL,
		       helpers, "");
	results_figure(results, "idle_pool_kib",
		       "idle pool: resident, stacks aside", NULL,
		       (double)bytes / 1024, "KiB");
	results_figure(results, "idle_pool_stacks_kib",
		       "idle pool: resident in stacks", NULL,
		       (double)stack_bytes / 1024, "KiB");
	return 0;
}
