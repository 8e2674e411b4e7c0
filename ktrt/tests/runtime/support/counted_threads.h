/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How many workers there are, as the kernel tells: not by the runtime's own count, which it
 * compares with its limit.
 */
#ifndef RUNTIME_TEST_COUNTED_THREADS_H
#define RUNTIME_TEST_COUNTED_THREADS_H

#include "runs.h"

#include <ctype.h>
#include <dirent.h>

/* Workers are "ktrt/" and a number.  One that has just begun has the name of its maker. */
static inline bool is_worker(const char *tid)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", tid);
	file = fopen(path, "re");
	/* It has ended. */
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = 0;
	fclose(file);
	return !strncmp(name, "ktrt/", 5) && isdigit((unsigned char)name[5]);
}

static inline unsigned workers_there(void)
{
	DIR *threads = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned nr = 0;

	assert_non_null(threads);
	while ((entry = readdir(threads)))
		nr += is_worker(entry->d_name);
	closedir(threads);
	return nr;
}

/* One that ends is there for some time after it no longer counts. */
static inline bool workers_are_at_most(unsigned most)
{
	struct ktrt_info info = KTRT_INFO_INIT;

	assert_int_equal(ktrt_info_get(&info), 0);
	return info.threads <= most && holds_soon(workers_there() <= most);
}

#endif /* RUNTIME_TEST_COUNTED_THREADS_H */
