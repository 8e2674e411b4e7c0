/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * From /proc/stat, whose clock ticks are coarse: good over seconds.  Time that
 * a hypervisor took away counts as busy.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "others.h"

static double rusage_seconds(int who)
{
	struct rusage usage;

	if (getrusage(who, &usage))
		return 0;
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double busy_seconds(void)
{
	unsigned long long user = 0, nice = 0, kernel = 0, idle, wait, irq = 0,
			   softirq = 0, steal = 0;
	FILE *file = fopen("/proc/stat", "r");

	if (!file)
		return 0;
	if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user,
		   &nice, &kernel, &idle, &wait, &irq, &softirq, &steal) != 8)
		user = nice = kernel = irq = softirq = steal = 0;
	fclose(file);
	return (double)(user + nice + kernel + irq + softirq + steal) /
	       (double)sysconf(_SC_CLK_TCK);
}

struct others others_now(void)
{
	return (struct others){
		.busy_seconds = busy_seconds(),
		.own_seconds = rusage_seconds(RUSAGE_SELF) +
			       rusage_seconds(RUSAGE_CHILDREN),
		.wall_seconds = (double)clock_ns() / 1e9,
	};
}

double others_cpus(const struct others *then)
{
	struct others now = others_now();
	double others = now.busy_seconds - then->busy_seconds -
			(now.own_seconds - then->own_seconds);
	double wall = now.wall_seconds - then->wall_seconds;

	return others > 0 && wall > 0 ? others / wall : 0;
}
