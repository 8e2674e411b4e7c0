/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cores that the runtime uses: as many of the allowed CPUs as ktask's
 * limits leave, in an order in which those of one last-level cache, and then
 * of one NUMA node, stand together.  What sysfs does not tell counts as one
 * cache and one node.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "rt.h"

#define CPU_DIR "/sys/devices/system/cpu/cpu%d"

struct place {
	int cpu, node, cache;
};

/* First number in a file, or @none. */
static int read_number(const char *path, int none)
{
	FILE *file = fopen(path, "re");
	int number;

	if (!file)
		return none;
	if (fscanf(file, "%d", &number) != 1)
		number = none;
	fclose(file);
	return number;
}

/* A cache is named by the first CPU that shares it. */
static int cache_of(int cpu)
{
	int cache = 0, level = 0;

	for (int index = 0; index < 8; index++) {
		char path[128];
		int this;

		snprintf(path, sizeof(path), CPU_DIR "/cache/index%d/level",
			 cpu, index);
		this = read_number(path, -1);
		if (this < level)
			continue;
		level = this;
		snprintf(path, sizeof(path),
			 CPU_DIR "/cache/index%d/shared_cpu_list", cpu, index);
		cache = read_number(path, 0);
	}
	return cache;
}

static int node_of(int cpu)
{
	for (int node = 0; node < 1024; node++) {
		char path[128];

		snprintf(path, sizeof(path), CPU_DIR "/node%d", cpu, node);
		if (!access(path, F_OK))
			return node;
	}
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct place *one = a, *two = b;

	if (one->node != two->node)
		return one->node < two->node ? -1 : 1;
	if (one->cache != two->cache)
		return one->cache < two->cache ? -1 : 1;
	return one->cpu < two->cpu ? -1 : one->cpu > two->cpu;
}

/* Passing conditions and what is only for helpers do not limit workers. */
static unsigned limit_of(unsigned nr_cpus)
{
	struct ktask_limit limits[32];
	unsigned nr = ktask_limits(limits, 32), least = nr_cpus;

	for (unsigned i = 0; i < nr && i < 32; i++) {
		if (!strcmp(limits[i].name, "cap") ||
		    !strcmp(limits[i].name, "others") ||
		    !strcmp(limits[i].name, "priority"))
			continue;
		if (limits[i].threads < least)
			least = limits[i].threads;
	}
	return least ? least : 1;
}

/* The thread's CPUs, within those of the options; all CPUs: @nr. */
static cpu_set_t *allowed_cpus(const struct ktrt_options *options, int *nr)
{
	cpu_set_t *cpus = NULL;
	size_t size, i, given;

	for (*nr = 1024; *nr <= 1 << 20; *nr *= 2) {
		size = CPU_ALLOC_SIZE(*nr);
		cpus = CPU_ALLOC(*nr);
		if (!cpus || !sched_getaffinity(0, size, cpus))
			break;
		CPU_FREE(cpus);
		cpus = NULL;
	}
	if (!cpus || !options->cpus)
		return cpus;
	given = options->cpus_size;
	for (i = 0; i < size; i++)
		((char *)cpus)[i] &=
			i < given ? ((const char *)options->cpus)[i] : 0;
	return cpus;
}

static unsigned list_places(struct place *places, const cpu_set_t *cpus,
			    int nr_cpus)
{
	unsigned nr = 0;

	for (int cpu = 0; cpu < nr_cpus; cpu++) {
		if (!CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(nr_cpus), cpus))
			continue;
		places[nr].cpu = cpu;
		places[nr].node = node_of(cpu);
		places[nr].cache = cache_of(cpu);
		nr++;
	}
	qsort(places, nr, sizeof(*places), by_place);
	return nr;
}

static void init_core(unsigned index, const struct place *place,
		      const struct place *before)
{
	struct core *core = &rt.cores[index];

	if (!before || before->node != place->node)
		rt.node_ids[rt.nr_nodes++] = place->node;
	if (!before || before->node != place->node ||
	    before->cache != place->cache)
		rt.nr_caches++;
	memset(core, 0, sizeof(*core));
	pthread_mutex_init(&core->lock, NULL);
	core->cpu = place->cpu;
	core->index = index;
	core->node = (int)rt.nr_nodes - 1;
	core->cache = rt.nr_caches - 1;
	core->suspended_end = &core->suspended;
	rt.core_of_cpu[place->cpu] = (int)index;
}

static int make_cores(const struct place *places, unsigned nr)
{
	rt.cores = aligned_alloc(CACHE_LINE, nr * sizeof(*rt.cores));
	rt.core_of_cpu = malloc((size_t)rt.nr_cpus * sizeof(int));
	rt.node_ids = calloc(nr, sizeof(*rt.node_ids));
	rt.shelves = aligned_alloc(CACHE_LINE, nr * sizeof(*rt.shelves));
	if (!rt.cores || !rt.core_of_cpu || !rt.node_ids || !rt.shelves)
		return -ENOMEM;
	for (int cpu = 0; cpu < rt.nr_cpus; cpu++)
		rt.core_of_cpu[cpu] = -1;
	for (unsigned i = 0; i < nr; i++)
		init_core(i, &places[i], i ? &places[i - 1] : NULL);
	for (unsigned i = 0; i < rt.nr_nodes; i++)
		shelf_init(&rt.shelves[i]);
	rt.nr_cores = nr;
	return 0;
}

/* Fewer cores than CPUs are taken from one node as far as they reach. */
int cores_read(const struct ktrt_options *options)
{
	cpu_set_t *cpus = allowed_cpus(options, &rt.nr_cpus);
	struct place *places = NULL;
	unsigned nr, wanted;
	int error = -ENOMEM;

	if (!cpus)
		return -ENOMEM;
	nr = (unsigned)CPU_COUNT_S(CPU_ALLOC_SIZE(rt.nr_cpus), cpus);
	if (nr)
		places = calloc(nr, sizeof(*places));
	if (places) {
		list_places(places, cpus, rt.nr_cpus);
		wanted = options->workers ? options->workers : limit_of(nr);
		error = make_cores(places, wanted < nr ? wanted : nr);
	} else if (!nr) {
		error = -EINVAL;
	}
	free(places);
	CPU_FREE(cpus);
	if (error)
		cores_free();
	return error;
}

void cores_free(void)
{
	for (unsigned i = 0; i < rt.nr_cores; i++)
		pthread_mutex_destroy(&rt.cores[i].lock);
	for (unsigned i = 0; i < rt.nr_nodes && rt.nr_cores; i++)
		shelf_free(&rt.shelves[i]);
	free(rt.cores);
	free(rt.core_of_cpu);
	free(rt.node_ids);
	free(rt.shelves);
}

int cores_node(int node)
{
	for (unsigned i = 0; node >= 0 && i < rt.nr_nodes; i++)
		if (rt.node_ids[i] == node)
			return (int)i;
	return -1;
}
