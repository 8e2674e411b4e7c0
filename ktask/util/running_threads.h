/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Do more threads run than there are CPUs?
 */
#ifndef KTASK_UTIL_RUNNING_THREADS_H
#define KTASK_UTIL_RUNNING_THREADS_H

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/file.h"

/* overload_is_ignored - KTASK_OVERLOAD=ignore */
static inline bool overload_is_ignored(void)
{
	const char *how = secure_getenv("KTASK_OVERLOAD");

	return how && !strcmp(how, "ignore");
}

/* cpus_are_busy - more threads of the machine run than this one has CPUs */
static inline bool cpus_are_busy(void)
{
	char text[128];
	unsigned running;
	cpu_set_t cpus;

	return file_text("/proc/loadavg", text, sizeof(text)) > 0 &&
	       sscanf(text, "%*s %*s %*s %u/", &running) == 1 &&
	       !sched_getaffinity(0, sizeof(cpus), &cpus) &&
	       running > (unsigned)CPU_COUNT(&cpus);
}

#endif /* KTASK_UTIL_RUNNING_THREADS_H */
