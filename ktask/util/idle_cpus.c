/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* See idle_cpus.h. */
#include <stdio.h>
#include <unistd.h>

#include "util/file.h"
#include "util/idle_cpus.h"

/* "cpuN user nice system idle iowait ...", in ticks. */
static bool read_line(const char *line, const struct kt_cpus *cpus,
		      unsigned long long *ticks)
{
	unsigned long long idle, waiting;
	unsigned cpu;

	if (sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &cpu, &idle,
		   &waiting) != 3 ||
	    cpu >= KT_CPUS_MAX || !(cpus->words[cpu / 64] >> cpu % 64 & 1))
		return false;
	*ticks += idle + waiting;
	return true;
}

bool idle_cpus_read(const struct kt_cpus *cpus, uint64_t *idle_ns)
{
	long ticks_a_second = sysconf(_SC_CLK_TCK);
	unsigned long long ticks = 0;
	struct file_lines lines;
	char path[FILE_PATH];
	unsigned nr = 0;
	const char *line;

	snprintf(path, sizeof(path), "%s/proc/stat", file_root);
	if (ticks_a_second <= 0 || !file_lines_open(&lines, path))
		return false;
	/* The CPUs come first; what follows takes the kernel long. */
	while ((line = file_lines_next(&lines)) && !strncmp(line, "cpu", 3))
		nr += read_line(line, cpus, &ticks);
	file_lines_end(&lines);
	*idle_ns = ticks * (1000000000u / (unsigned long)ticks_a_second);
	return nr && nr == cpus_count(cpus);
}

bool idle_cpus_note(struct idle_cpus *last, uint64_t now_ns, uint64_t idle_ns,
		    uint64_t own_ns)
{
	uint64_t passed_ns = now_ns - last->then_ns;

	if (last->then_ns && passed_ns < IDLE_CPUS_NS)
		return last->idle;
	/* The kernel's idle time may go back. */
	last->idle =
		last->then_ns && passed_ns < IDLE_CPUS_MOST_NS &&
		idle_ns + own_ns > last->idle_ns + last->own_ns + passed_ns / 2;
	last->then_ns = now_ns;
	last->idle_ns = idle_ns;
	last->own_ns = own_ns;
	return last->idle;
}

static bool is_machine(const struct kt_cpus *cpus)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	return online <= 0 || cpus_count(cpus) >= (unsigned)online;
}

bool idle_cpus_remain(struct idle_cpus *last, uint64_t now_ns, uint64_t own_ns)
{
	struct kt_cpus cpus;
	uint64_t idle_ns;

	if (last->then_ns && now_ns - last->then_ns < IDLE_CPUS_NS)
		return last->idle;
	if (!cpus_get_affinity(&cpus) || is_machine(&cpus) ||
	    !idle_cpus_read(&cpus, &idle_ns))
		return false;
	return idle_cpus_note(last, now_ns, idle_ns, own_ns);
}
