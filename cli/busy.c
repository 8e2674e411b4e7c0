/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Counters of /proc/stat: see busy.h.  They tick in hundredths of a second,
 * so that less than a second of measuring tells nothing.  Time that a
 * hypervisor gave to others counts as theirs.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "busy.h"

/* user, nice, system, idle, iowait, irq, softirq, steal; all but 3 and 4 */
static double machine_seconds(void)
{
	unsigned long long ticks[8] = { 0 }, sum = 0;
	FILE *file = fopen("/proc/stat", "re");
	int i, found = 0;

	if (!file)
		return 0;
	if (!fscanf(file, "cpu"))
		while (found < 8 && fscanf(file, "%llu", &ticks[found]) == 1)
			found++;
	fclose(file);
	for (i = 0; i < found; i++)
		if (i != 3 && i != 4)
			sum += ticks[i];
	return (double)sum / sysconf(_SC_CLK_TCK);
}

static double seconds(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

struct busy busy_now(void)
{
	return (struct busy){
		.machine_seconds = machine_seconds(),
		.own_seconds = seconds(CLOCK_PROCESS_CPUTIME_ID),
		.wall_seconds = seconds(CLOCK_MONOTONIC),
	};
}

double busy_others(const struct busy *then)
{
	struct busy now = busy_now();
	double others = now.machine_seconds - then->machine_seconds -
			(now.own_seconds - then->own_seconds);
	double wall = now.wall_seconds - then->wall_seconds;

	return others > 0 && wall > 0 ? others / wall : 0;
}
