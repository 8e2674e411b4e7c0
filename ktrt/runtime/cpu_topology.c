/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The NUMA node and the last-level cache of each CPU, and the distances of nodes, from
 * sysfs.  If sysfs does not tell, a node counts as one cache, and the machine as one
 * node.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_topology.h"

#define CPU_DIR "%s/sys/devices/system/cpu/cpu%d"
#define NODE_DIR "%s/sys/devices/system/node"

/* Distances as the firmware gives them: to itself, to any other. */
#define DISTANCE_OWN 10
#define DISTANCE_OTHER 20

#define TEXT_BYTES 8192
/* What a kernel has at most; more is nonsense. */
#define NODES_MAX 1024
#define NUMBER_MAX (1 << 20)

const char *topology_root = "";

static bool read_text(const char *path, char *text)
{
	FILE *file = fopen(path, "re");
	bool read = file && fgets(text, TEXT_BYTES, file);

	if (file)
		fclose(file);
	return read;
}

/* First number in a file, or @none. */
static int read_number(const char *path, int none)
{
	char text[TEXT_BYTES];
	int number;

	return read_text(path, text) && sscanf(text, "%d", &number) == 1
		       ? number
		       : none;
}

/* The next of "0-3,8", as [first, last]; false at the end. */
static bool next_range(const char **text, int *first, int *last)
{
	int used = 0;

	if (sscanf(*text, "%d%n", first, &used) != 1)
		return false;
	*text += used;
	*last = *first;
	if (sscanf(*text, "-%d%n", last, &used) == 1)
		*text += used;
	*text += **text == ',';
	return *first >= 0 && *last <= NUMBER_MAX;
}

/* A cache is named by the first CPU that shares it; -1: not told. */
static int cache_of(int cpu)
{
	int cache = -1, level = 0;

	for (int index = 0; index < 8; index++) {
		char path[256];
		int this;

		snprintf(path, sizeof(path), CPU_DIR "/cache/index%d/level",
			 topology_root, cpu, index);
		this = read_number(path, -1);
		if (this < level)
			continue;
		level = this;
		snprintf(path, sizeof(path),
			 CPU_DIR "/cache/index%d/shared_cpu_list",
			 topology_root, cpu, index);
		cache = read_number(path, -1);
	}
	return cache;
}

static void read_node(int node, struct cpu_location *locations, unsigned nr)
{
	char path[256], text[TEXT_BYTES];
	const char *at = text;
	int first, last;

	snprintf(path, sizeof(path), NODE_DIR "/node%d/cpulist", topology_root,
		 node);
	if (!read_text(path, text))
		return;
	while (next_range(&at, &first, &last))
		for (unsigned i = 0; i < nr; i++)
			if (locations[i].cpu >= first &&
			    locations[i].cpu <= last)
				locations[i].node = node;
}

static bool read_nodes(char *text)
{
	char path[256];

	snprintf(path, sizeof(path), NODE_DIR "/online", topology_root);
	return read_text(path, text);
}

static int compare_locations(const void *a, const void *b)
{
	const struct cpu_location *one = a, *two = b;

	if (one->node != two->node)
		return one->node < two->node ? -1 : 1;
	if (one->cache != two->cache)
		return one->cache < two->cache ? -1 : 1;
	return one->cpu < two->cpu ? -1 : one->cpu > two->cpu;
}

void cpu_locations_read(struct cpu_location *locations, unsigned nr)
{
	char text[TEXT_BYTES];
	const char *at = text;
	int first, last;

	for (unsigned i = 0; i < nr; i++) {
		locations[i].node = 0;
		locations[i].cache = cache_of(locations[i].cpu);
	}
	if (read_nodes(text))
		while (next_range(&at, &first, &last))
			for (int node = first; node <= last && node < NODES_MAX;
			     node++)
				read_node(node, locations, nr);
	qsort(locations, nr, sizeof(*locations), compare_locations);
}

/* The place of @node among the online nodes, which are listed as in sysfs; or -1. */
static int column_of(const char *online, int node)
{
	int first, last, before = 0;

	while (next_range(&online, &first, &last)) {
		if (node >= first && node <= last)
			return before + node - first;
		before += last - first + 1;
	}
	return -1;
}

/* The number that stands at @column, or @none. */
static int number_at(const char *row, int column, int none)
{
	int number, used;

	while (sscanf(row, "%d%n", &number, &used) == 1) {
		if (!column--)
			return number;
		row += used;
	}
	return none;
}

void node_distances_read(int from, const int *to, unsigned nr, int *distances)
{
	char path[256], online[TEXT_BYTES], row[TEXT_BYTES];

	snprintf(path, sizeof(path), NODE_DIR "/node%d/distance", topology_root,
		 from);
	if (!read_nodes(online))
		*online = 0;
	if (!read_text(path, row))
		*row = 0;
	for (unsigned i = 0; i < nr; i++)
		distances[i] = number_at(row, column_of(online, to[i]),
					 to[i] == from ? DISTANCE_OWN
						       : DISTANCE_OTHER);
}
