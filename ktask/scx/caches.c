// SPDX-License-Identifier: GPL-2.0-only
/*
 * See caches.h.  Where the kernel knows no caches, as in some virtual machines, the CPUs of
 * a package share one.
 *
 * The files are read by util/file.h.  What the library knows of the machine
 * (user/machine/topo_read.c) is of no use here: nodes and siblings, but no caches.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scx/caches.h"
#include "util/file.h"

#define CPU "/sys/devices/system/cpu/cpu%u"
#define INDEXES_MAX 10
#define UNKNOWN (-1)

/* The first CPU of a list as "4-7,12-15". */
static int first_of_list(const char *list)
{
	char *end;
	long cpu = strtol(list, &end, 10);

	return end == list || cpu < 0 || cpu >= SCX_CPUS_MAX ? UNKNOWN
							     : (int)cpu;
}

static int read_level(unsigned cpu, unsigned index)
{
	char text[16];

	return system_text(text, sizeof(text), CPU "/cache/index%u/level", cpu,
			   index) < 0
		       ? UNKNOWN
		       : atoi(text);
}

/* The first CPU that shares the highest cache with @cpu. */
static int find_sharer(unsigned cpu)
{
	int highest = 0, sharer = UNKNOWN;
	char list[FILE_LINE];

	for (unsigned index = 0; index < INDEXES_MAX; index++) {
		int level = read_level(cpu, index);

		if (level <= highest ||
		    system_text(list, sizeof(list),
				CPU "/cache/index%u/shared_cpu_list", cpu,
				index) < 0)
			continue;
		highest = level;
		sharer = first_of_list(list);
	}
	if (sharer == UNKNOWN &&
	    system_text(list, sizeof(list), CPU "/topology/package_cpus_list",
			cpu) >= 0)
		sharer = first_of_list(list);
	return sharer;
}

/* A sharer has a lower number, so its cache is known by then. */
static int number_caches(struct caches *caches)
{
	for (unsigned cpu = 0; cpu < caches->nr_cpus; cpu++) {
		int sharer = find_sharer(cpu);

		if (sharer == UNKNOWN || sharer > (int)cpu)
			caches->of_cpu[cpu] = 0;
		else if (sharer < (int)cpu)
			caches->of_cpu[cpu] = caches->of_cpu[sharer];
		else if (caches->nr == SCX_CACHES_MAX)
			return -E2BIG;
		else
			caches->of_cpu[cpu] = caches->nr++;
	}
	if (!caches->nr)
		caches->nr = 1;
	return 0;
}

static void list_cpus(struct caches *caches)
{
	unsigned nr = 0;

	for (unsigned cache = 0; cache < caches->nr; cache++) {
		caches->first[cache] = nr;
		for (unsigned cpu = 0; cpu < caches->nr_cpus; cpu++)
			if (caches->of_cpu[cpu] == cache)
				caches->cpus[nr++] = cpu;
	}
	/* Also for the indexes behind the last one, which the program could form. */
	for (unsigned cache = caches->nr; cache <= SCX_CACHES_MAX; cache++)
		caches->first[cache] = nr;
}

int caches_read(struct caches *caches, unsigned nr_cpus)
{
	int error;

	memset(caches, 0, sizeof(*caches));
	if (nr_cpus > SCX_CPUS_MAX)
		return -E2BIG;
	caches->nr_cpus = nr_cpus;
	error = number_caches(caches);
	if (!error)
		list_cpus(caches);
	return error;
}
