/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cores that the runtime uses: as many of the allowed CPUs as ktask's limits
 * leave.  They are ordered so that cores of one last-level cache are adjacent, and so
 * are those of one NUMA node.  For each node the other nodes are sorted by distance.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <ktask/ktask.h>

#include "cpu_topology.h"
#include "rt.h"

/* Limits that change while the program runs, and those only for helpers, do not limit workers. */
static unsigned limit_of(unsigned nr_cpus)
{
	struct ktask_limit limits[32] = { KTASK_LIMIT_INIT };
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

static void list_locations(struct cpu_location *locations,
			   const cpu_set_t *cpus, int nr_cpus)
{
	unsigned nr = 0;

	for (int cpu = 0; cpu < nr_cpus; cpu++)
		if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(nr_cpus), cpus))
			locations[nr++].cpu = cpu;
	cpu_locations_read(locations, nr);
}

static void init_core(unsigned index, const struct cpu_location *location,
		      const struct cpu_location *before)
{
	struct core *core = &rt.cores[index];

	if (!before || before->node != location->node) {
		rt.nodes[rt.nr_nodes].id = location->node;
		rt.nodes[rt.nr_nodes++].first_cache = rt.nr_caches;
	}
	if (!before || before->node != location->node ||
	    before->cache != location->cache)
		rt.nr_caches++;
	rt.nodes[rt.nr_nodes - 1].end_cache = rt.nr_caches;
	memset(core, 0, sizeof(*core));
	core->cpu = location->cpu;
	core->index = index;
	core->node = (int)rt.nr_nodes - 1;
	core->cache = rt.nr_caches - 1;
	core->suspended_end = &core->suspended;
	rt.core_of_cpu[location->cpu] = (int)index;
}

/* If the distances are equal, the node that comes first after @from, going round. */
static bool is_nearer(const int *distances, unsigned from, unsigned a,
		      unsigned b)
{
	unsigned nr = rt.nr_nodes;

	if (distances[a] != distances[b])
		return distances[a] < distances[b];
	return (a + nr - from) % nr < (b + nr - from) % nr;
}

/* Sort all nodes but @from by their distance from it. */
static void sort_near(unsigned from, const int *distances, unsigned short *near)
{
	unsigned nr = 0, at;

	for (unsigned node = 0; node < rt.nr_nodes; node++) {
		if (node == from)
			continue;
		for (at = nr++; at; near[at] = near[at - 1], at--)
			if (!is_nearer(distances, from, node, near[at - 1]))
				break;
		near[at] = (unsigned short)node;
	}
}

static int find_near(void)
{
	unsigned nr = rt.nr_nodes;
	int *numbers = calloc(2 * (size_t)nr, sizeof(*numbers));

	rt.near = calloc((size_t)nr * nr, sizeof(*rt.near));
	if (!numbers || !rt.near) {
		free(numbers);
		return -ENOMEM;
	}
	for (unsigned node = 0; node < nr; node++)
		numbers[node] = rt.nodes[node].id;
	for (unsigned node = 0; node < nr; node++) {
		rt.nodes[node].near = &rt.near[(size_t)node * nr];
		node_distances_read(numbers[node], numbers, nr, numbers + nr);
		sort_near(node, numbers + nr, rt.nodes[node].near);
	}
	free(numbers);
	return 0;
}

/* All that a wake-up reads, except workers, is in one allocation, so that it touches few
 * pages. */
static bool allocate_cores(unsigned nr)
{
	size_t idle_bytes = mask_bytes(nr);

	rt.cores = aligned_alloc(
		CACHE_LINE, nr * sizeof(*rt.cores) +
				    nr * sizeof(*rt.node_queues) + idle_bytes);
	if (!rt.cores)
		return false;
	rt.node_queues = (struct node_queue *)(rt.cores + nr);
	rt.idle = (union mask_line *)(rt.node_queues + nr);
	memset(rt.idle, 0, idle_bytes);
	return true;
}

static int make_cores(const struct cpu_location *locations, unsigned nr)
{
	rt.core_of_cpu = malloc((size_t)rt.nr_cpus * sizeof(int));
	rt.nodes = calloc(nr, sizeof(*rt.nodes));
	if (!allocate_cores(nr) || !rt.core_of_cpu || !rt.nodes)
		return -ENOMEM;
	for (int cpu = 0; cpu < rt.nr_cpus; cpu++)
		rt.core_of_cpu[cpu] = -1;
	for (unsigned i = 0; i < nr; i++)
		init_core(i, &locations[i], i ? &locations[i - 1] : NULL);
	rt.families = calloc((size_t)rt.nr_nodes * FAMILY_BUCKETS,
			     sizeof(*rt.families));
	if (!rt.families)
		return -ENOMEM;
	for (unsigned i = 0; i < rt.nr_nodes; i++)
		node_queue_init(&rt.node_queues[i],
				rt.families + i * FAMILY_BUCKETS);
	rt.nr_cores = nr;
	return find_near();
}

int cores_lay_out(const cpu_set_t *cpus, int nr_cpus, unsigned wanted)
{
	unsigned nr = (unsigned)CPU_COUNT_S(CPU_ALLOC_SIZE(nr_cpus), cpus);
	struct cpu_location *locations;
	int error;

	if (!nr)
		return -EINVAL;
	locations = calloc(nr, sizeof(*locations));
	if (!locations)
		return -ENOMEM;
	rt.nr_cpus = nr_cpus;
	list_locations(locations, cpus, nr_cpus);
	if (!wanted)
		wanted = limit_of(nr);
	error = make_cores(locations, wanted < nr ? wanted : nr);
	free(locations);
	if (error)
		cores_free();
	return error;
}

/* Each core needs a worker, and a leader that becomes one is one more. */
static unsigned cores_wanted(const struct ktrt_options *options,
			     const cpu_set_t *cpus, int nr_cpus)
{
	unsigned most = options->max_threads, wanted = options->workers;

	if (!most)
		return wanted;
	if (!wanted)
		wanted = limit_of(
			(unsigned)CPU_COUNT_S(CPU_ALLOC_SIZE(nr_cpus), cpus));
	if (options->flags & KTRT_FOLLOW)
		most--;
	return wanted < most ? wanted : most;
}

int cores_read(const struct ktrt_options *options)
{
	int nr_cpus, error;
	cpu_set_t *cpus = allowed_cpus(options, &nr_cpus);

	if (!cpus)
		return -ENOMEM;
	error = cores_lay_out(cpus, nr_cpus,
			      cores_wanted(options, cpus, nr_cpus));
	CPU_FREE(cpus);
	return error;
}

void cores_free(void)
{
	for (unsigned i = 0; i < rt.nr_nodes && rt.nr_cores; i++)
		node_queue_free(&rt.node_queues[i]);
	free(rt.cores);
	free(rt.core_of_cpu);
	free(rt.nodes);
	free(rt.near);
	free(rt.families);
}

int cores_node(int node)
{
	for (unsigned i = 0; node >= 0 && i < rt.nr_nodes; i++)
		if (rt.nodes[i].id == node)
			return (int)i;
	return -1;
}
