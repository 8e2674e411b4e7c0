/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The walk over /proc.  A process that begins or ends meanwhile may be left out.
 */
#include <dirent.h>
#include <stddef.h>

#include "processes.h"

long sum_over_processes(long (*value_of)(const char *pid))
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	long sum = 0;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			sum += value_of(entry->d_name);
	if (dir)
		closedir(dir);
	return sum;
}
