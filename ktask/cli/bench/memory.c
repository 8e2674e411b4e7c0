/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Available memory: see memory.h.  Page cache that a cgroup could drop counts
 * as used here, so the answer errs on the small side; cgroup v1 is not read.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"

static uint64_t mem_available(void)
{
	uint64_t kib, bytes = UINT64_MAX;
	char line[256];
	FILE *file = fopen("/proc/meminfo", "re");

	if (!file)
		return bytes;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			bytes = kib << 10;
	fclose(file);
	return bytes;
}

/* One number from a cgroup's file; "max" and a missing file: no limit. */
static uint64_t cgroup_value(const char *cgroup, const char *name)
{
	char path[PATH_MAX];
	uint64_t value = UINT64_MAX;
	FILE *file;

	if (snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", cgroup, name) >=
	    (int)sizeof(path))
		return value;
	file = fopen(path, "re");
	if (!file)
		return value;
	if (fscanf(file, "%" SCNu64, &value) != 1)
		value = UINT64_MAX;
	fclose(file);
	return value;
}

static uint64_t cgroup_available(const char *cgroup)
{
	uint64_t max = cgroup_value(cgroup, "memory.max");
	uint64_t used = cgroup_value(cgroup, "memory.current");

	if (max == UINT64_MAX || used == UINT64_MAX)
		return max;
	return used < max ? max - used : 0;
}

/* The path of the process in the v2 hierarchy: the line "0::/path". */
static void own_cgroup(char *path, size_t size)
{
	char line[PATH_MAX];
	FILE *file = fopen("/proc/self/cgroup", "re");

	path[0] = '\0';
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "0::/", 4))
			snprintf(path, size, "%s", line + 3);
	}
	fclose(file);
}

uint64_t memory_available(void)
{
	uint64_t available, least = mem_available();
	char path[PATH_MAX];
	char *slash;

	own_cgroup(path, sizeof(path));
	for (;;) {
		available = cgroup_available(path);
		if (available < least)
			least = available;
		slash = strrchr(path, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}
