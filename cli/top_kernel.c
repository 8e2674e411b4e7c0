/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel's jobs for `ktask top`: what ktask.ko says of them to whoever may
 * read its debugfs (kmod/demand.c writes it).
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "top.h"

#define JOBS "/sys/kernel/debug/ktask/jobs"

/*
 * "PID NAME FUNC DONE/TOTAL helpers N wanted N ns N"; the process's name may hold
 * anything, so that the rest is found from the end.
 */
static bool parse(const char *line, struct ktask_job_info *info)
{
	const char *rest = strrchr(line, '/'), *func;
	int digits = 0, spaces = 0;

	memset(info, 0, sizeof(*info));
	if (!rest || sscanf(line, "%d", &info->pid) != 1)
		return false;
	if (sscanf(rest, "/%lu helpers %u wanted %u ns %lu", &info->units_total,
		   &info->helpers, &info->wanted, &info->elapsed_ns) != 4)
		return false;
	/* Back over the number and the word before it. */
	for (func = rest; func > line && spaces < 2; func--)
		spaces += func[-1] == ' ';
	if (spaces < 2)
		return false;
	func++;
	if (sscanf(func, "%15[^ ]%*[^ ] %lu", info->name, &info->units_done) !=
		    2 &&
	    sscanf(func, "%15[^ ]%n %lu", info->name, &digits,
		   &info->units_done) != 2)
		return false;
	if (info->units_done)
		info->remaining_ns = (uint64_t)((double)info->elapsed_ns /
						(double)info->units_done *
						(double)(info->units_total -
							 info->units_done));
	return info->units_done <= info->units_total;
}

/* Of the process; a kernel thread is root's. */
static unsigned user_of(int pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) ? 0 : st.st_uid;
}

unsigned top_kernel_jobs(struct ktask_job_info *jobs, unsigned room)
{
	FILE *file = fopen(JOBS, "re");
	char line[256];
	unsigned nr = 0;

	while (file && nr < room && fgets(line, sizeof(line), file)) {
		if (!parse(line, &jobs[nr]))
			continue;
		jobs[nr].uid = user_of(jobs[nr].pid);
		nr++;
	}
	if (file)
		fclose(file);
	return nr;
}
