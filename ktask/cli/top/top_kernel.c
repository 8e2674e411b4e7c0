/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel's jobs for `ktask top`: what ktask.ko says of them to whoever may
 * read its debugfs (kernel/engine/kernel_shares.c writes it).
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "top.h"
#include "util/remaining.h"

#define JOBS "/sys/kernel/debug/ktask/jobs"

/* Where the last word before @end begins; @line if there is none. */
static const char *word_before(const char *line, const char *end)
{
	while (end > line && end[-1] == ' ')
		end--;
	while (end > line && end[-1] != ' ')
		end--;
	return end;
}

/*
 * "PID NAME FUNC [MODULE] DONE/TOTAL helpers N wanted N ns N", with the module only if the
 * function is in one.  The process's name may contain anything, so parse the rest from
 * the end.
 */
static bool parse_job(const char *line, struct ktask_job_info *info)
{
	const char *rest = strrchr(line, '/'), *done, *func;

	memset(info, 0, sizeof(*info));
	if (!rest || sscanf(line, "%d", &info->pid) != 1)
		return false;
	if (sscanf(rest, "/%lu helpers %u wanted %u ns %lu", &info->units_total,
		   &info->helpers, &info->wanted, &info->elapsed_ns) != 4)
		return false;
	done = word_before(line, rest);
	func = word_before(line, done);
	if (*func == '[')
		func = word_before(line, func);
	if (func == line || sscanf(done, "%lu", &info->units_done) != 1 ||
	    sscanf(func, "%15[^ ]", info->name) != 1)
		return false;
	if (info->units_done > info->units_total)
		return false;
	info->remaining_ns = remaining_ns(info->elapsed_ns, info->units_done,
					  info->units_total - info->units_done);
	return true;
}

/* Of the process; a kernel thread is root's. */
static unsigned user_of(int pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) ? 0 : st.st_uid;
}

unsigned top_kernel_jobs(struct ktask_job_info *jobs, unsigned capacity)
{
	FILE *file = fopen(JOBS, "re");
	char line[256];
	unsigned nr = 0;

	while (file && nr < capacity && fgets(line, sizeof(line), file)) {
		if (!parse_job(line, &jobs[nr]))
			continue;
		jobs[nr].uid = user_of(jobs[nr].pid);
		nr++;
	}
	if (file)
		fclose(file);
	return nr;
}
