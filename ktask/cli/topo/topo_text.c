/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * `ktask topo` for people.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ui/size.h"
#include "cli/ui/text.h"
#include "topo_command.h"
#include "util/shown_text.h"

static hwloc_obj_t next_node(const struct topo *topo, hwloc_obj_t node)
{
	return hwloc_get_next_obj_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE,
					  node);
}

static void print_counts(const struct machine *machine)
{
	unsigned smt = machine->cores ? machine->cpus / machine->cores : 1;

	printf("%u package%s, %u core%s, %u CPU%s (%u thread%s per core)\n",
	       machine->packages, plural_suffix(machine->packages),
	       machine->cores, plural_suffix(machine->cores), machine->cpus,
	       plural_suffix(machine->cpus), smt, plural_suffix(smt));
}

/* Wide enough for the longest list of CPUs, so that the columns stand. */
static int cpus_width(const struct topo *topo)
{
	hwloc_obj_t node = NULL;
	int len, width = 4;

	while ((node = next_node(topo, node))) {
		len = hwloc_bitmap_list_snprintf(NULL, 0, node->cpuset);
		if (len > width)
			width = len;
	}
	return width;
}

static void print_node(const struct topo *topo, hwloc_obj_t node, int width)
{
	hwloc_obj_t other = NULL;
	char memory[SIZE_TEXT];
	unsigned distance;
	char *cpus = NULL;

	hwloc_bitmap_list_asprintf(&cpus, node->cpuset);
	printf("  %4u  %-*s  %10s ", node->os_index, width,
	       cpus && *cpus ? cpus : "none",
	       size_text(memory, topo_memory(topo, node)));
	free(cpus);
	while ((other = next_node(topo, other))) {
		distance = topo_distance(topo, node->os_index, other->os_index);
		if (distance)
			printf(" %4u", distance);
		else
			printf("    ?");
	}
	printf("\n");
}

static void print_nodes(const struct topo *topo)
{
	int width = cpus_width(topo);
	hwloc_obj_t node = NULL;

	printf("\n  node  %-*s      memory  distances\n", width, "CPUs");
	while ((node = next_node(topo, node)))
		print_node(topo, node, width);
}

static void print_caches(const struct topo *topo)
{
	struct topo_cache caches[TOPO_CACHES];
	unsigned i, nr = topo_caches(topo, caches);
	char size[SIZE_TEXT];

	if (!nr)
		return;
	printf("\n  cache        size  count  CPUs each\n");
	for (i = 0; i < nr; i++)
		printf("  %-5s  %10s  %5u  %9u\n", caches[i].name,
		       size_text(size, caches[i].size_bytes), caches[i].nr,
		       caches[i].cpus);
}

/* What the library says where a thing does not limit at all. */
#define NO_LIMIT 65536

static void print_limit(const struct ktask_limit *limit, bool least, int width)
{
	char threads[16] = "any", why[sizeof(limit->why)];

	/* With the names of groups, which others may have made. */
	text_show(strcpy(why, limit->why));
	if (limit->threads < NO_LIMIT)
		snprintf(threads, sizeof(threads), "%u", limit->threads);
	printf("%c %-*s  %7s  %s\n", least ? '>' : ' ', width, limit->name,
	       threads, why);
}

static int limits_width(const struct topo *topo)
{
	int len, width = 5;

	for (unsigned i = 0; i < topo->nr_limits; i++) {
		len = strlen(topo->limits[i].name);
		if (len > width)
			width = len;
	}
	return width;
}

static void print_limits(const struct topo *topo)
{
	int width = limits_width(topo);

	printf("\nA job started here gets at most %u thread%s, the caller included:\n\n",
	       topo->threads, plural_suffix(topo->threads));
	printf("  %-*s  threads  why\n", width, "limit");
	for (unsigned i = 0; i < topo->nr_limits; i++)
		print_limit(&topo->limits[i],
			    topo->limits[i].threads == topo->threads, width);
}

static void print_engines(const struct topo *topo)
{
	if (!topo->nr_engines)
		return;
	printf("\nLarge jobs are done by helpers of this process (user) or of "
	       "the kernel's module:\n\n");
	printf("  operation  engine   why\n");
	for (unsigned i = 0; i < topo->nr_engines; i++)
		printf("  %-9s  %-7s  %s\n", topo->engines[i].operation,
		       topo->engines[i].engine.name,
		       topo->engines[i].engine.why);
}

void topo_print(const struct topo *topo)
{
	char text[MACHINE_TEXT];

	printf("%s\n", machine_text(&topo->machine, text));
	print_counts(&topo->machine);
	if (!topo->machine.this_system)
		printf("(CPUs, nodes and caches are of the machine in hwloc's "
		       "file, not of this one)\n");
	print_nodes(topo);
	print_caches(topo);
	print_limits(topo);
	print_engines(topo);
}
