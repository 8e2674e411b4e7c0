/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Counters of /proc/stat: see system_load.h.  They tick in hundredths of a second, so less
 * than a second of measuring says nothing.  The CPU time of children counts as that of
 * this process once they were waited for.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "system_load.h"
#include "util/clock.h"

/* Fields of the first line of /proc/stat: proc_stat(5). */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, NR_FIELDS };

static void read_machine(struct busy *busy)
{
	unsigned long long ticks[NR_FIELDS] = { 0 };
	double hertz = sysconf(_SC_CLK_TCK);
	FILE *file = fopen("/proc/stat", "re");
	int found = 0;

	busy->unknown = !file;
	if (!file)
		return;
	if (!fscanf(file, "cpu"))
		while (found < NR_FIELDS &&
		       fscanf(file, "%llu", &ticks[found]) == 1)
			found++;
	fclose(file);
	for (int i = 0; i < found; i++)
		if (i != IDLE && i != IOWAIT && i != STEAL)
			busy->machine_seconds += ticks[i] / hertz;
	busy->stolen_seconds = ticks[STEAL] / hertz;
}

static double children_seconds(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return timeval_seconds(used.ru_utime) + timeval_seconds(used.ru_stime);
}

struct busy busy_now(void)
{
	struct busy busy = { 0 };

	read_machine(&busy);
	busy.own_seconds =
		clock_seconds(CLOCK_PROCESS_CPUTIME_ID) + children_seconds();
	busy.wall_seconds = clock_seconds(CLOCK_MONOTONIC);
	return busy;
}

static double cpus_per_second(double seconds, const struct busy *begin,
			      const struct busy *end)
{
	double wall = end->wall_seconds - begin->wall_seconds;

	return seconds > 0 && wall > 0 ? seconds / wall : 0;
}

double busy_others(const struct busy *begin, const struct busy *end)
{
	double all = end->machine_seconds - begin->machine_seconds;

	return cpus_per_second(all - (end->own_seconds - begin->own_seconds),
			       begin, end);
}

double busy_stolen(const struct busy *begin, const struct busy *end)
{
	return cpus_per_second(end->stolen_seconds - begin->stolen_seconds,
			       begin, end);
}
