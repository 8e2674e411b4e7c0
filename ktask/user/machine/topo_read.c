/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reading the machine from sysfs: a handful of lists.
 *
 * Why not hwloc, which the command uses to show a machine?  The library would have to open
 * it at run time, in the first job.  With 288 CPUs and 8 nodes hwloc takes 9 to 15 ms, and
 * these lists 1.2 ms.  A machine without hwloc would silently count as flat.  And when
 * CPUs come or go, a job would have to load the topology again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/deps.h"
#include "util/file.h"
#include "user/machine/topo.h"

#define LOCAL_DISTANCE 10
#define REMOTE_DISTANCE 20

#define CPU "/sys/devices/system/cpu"
#define NODE "/sys/devices/system/node"
/* A list of every other of KT_CPUS_MAX CPUs. */
#define LIST_BYTES 16384

/* A core is slow if it has less than this part of the fastest core's capacity. */
#define SLOW_NUMERATOR 3
#define SLOW_DENOMINATOR 4

/* ---- lists: "0-3,8,10-11\n"; "\n" is an empty one ---- */

static const char *list_number(const char *text, unsigned *number)
{
	const char *begin = text;
	unsigned value = 0;

	while (*text >= '0' && *text <= '9' && value < KT_CPUS_MAX)
		value = value * 10 + (unsigned)(*text++ - '0');
	*number = value;
	return text > begin && value < KT_CPUS_MAX ? text : NULL;
}

static bool parse_list(const char *text, struct kt_cpus *set)
{
	unsigned from, to;

	memset(set, 0, sizeof(*set));
	if (!strcmp(text, "\n"))
		return true;
	for (;;) {
		text = list_number(text, &from);
		to = from;
		if (text && *text == '-')
			text = list_number(text + 1, &to);
		if (!text || to < from)
			return false;
		while (from <= to)
			cpus_set(set, from++);
		if (!strcmp(text, "\n"))
			return true;
		if (*text++ != ',')
			return false;
	}
}

/* @text: room for LIST_BYTES.  Return: false, and an empty set, if there is no such
 * list. */
static bool read_list(char *text, const char *name, struct kt_cpus *set)
{
	if (system_text(text, LIST_BYTES, "%s", name) > 0 &&
	    parse_list(text, set))
		return true;
	memset(set, 0, sizeof(*set));
	return false;
}

static bool is_in(const struct kt_cpus *set, unsigned i)
{
	return set->words[i / 64] >> (i % 64) & 1;
}

/* The next in @set from @i on; KT_CPUS_MAX behind the last. */
static unsigned next_in(const struct kt_cpus *set, unsigned i)
{
	while (i < KT_CPUS_MAX && !is_in(set, i))
		i += set->words[i / 64] >> (i % 64) ? 1 : 64 - i % 64;
	return i;
}

#define for_each_in(i, set)                                 \
	for (unsigned i = next_in(set, 0); i < KT_CPUS_MAX; \
	     i = next_in(set, i + 1))

/* ---- nodes ---- */

/* Return: the index, a new one if need be; -1 if there are too many. */
static int index_of(struct topo *topo, int id)
{
	int index = topo_node_index(topo, id);

	if (index < 0 && topo->nr_nodes < TOPO_NODES_MAX) {
		index = (int)topo->nr_nodes++;
		topo->ids[index] = id;
	}
	return index;
}

/* One number for each node that is online, in their order. */
static void read_distances(char *text, struct topo *topo, int from,
			   const struct kt_cpus *nodes)
{
	char *end;

	system_text(text, LIST_BYTES, NODE "/node%d/distance", topo->ids[from]);
	for_each_in(id, nodes)
	{
		unsigned long distance = strtoul(text, &end, 10);
		int to = topo_node_index(topo, (int)id);

		if (end == text)
			return;
		text = end;
		/* What firmware says of a node and itself is always 10. */
		if (to >= 0 && distance >= LOCAL_DISTANCE &&
		    distance <= UINT16_MAX)
			topo->distance[from][to] = (uint16_t)distance;
	}
}

static void read_node(char *text, struct topo *topo, int index,
		      const struct kt_cpus *nodes)
{
	struct kt_cpus *cpus = &topo->node_cpus[index];
	char name[64];

	snprintf(name, sizeof(name), NODE "/node%d/cpulist", topo->ids[index]);
	read_list(text, name, cpus);
	topo->nr_node_cpus[index] = cpus_count(cpus);
	read_distances(text, topo, index, nodes);
}

/* If there is one node, or none that can be read, node 0 has all CPUs. */
static void make_flat(struct topo *topo)
{
	topo->nr_nodes = 1;
	topo->nr_node_cpus[0] = topo->nr_cpus;
	memset(&topo->node_cpus[0], 0xff, sizeof(topo->node_cpus[0]));
}

static void begin_nodes(struct topo *topo, const struct topo *before)
{
	topo->nr_nodes = 0;
	topo->ids[0] = 0;
	for (unsigned a = 0; a < TOPO_NODES_MAX; a++)
		for (unsigned b = 0; b < TOPO_NODES_MAX; b++)
			topo->distance[a][b] =
				a == b ? LOCAL_DISTANCE : REMOTE_DISTANCE;
	for (unsigned i = 0; before && i < before->nr_nodes; i++)
		index_of(topo, before->ids[i]);
}

static void read_nodes(char *text, struct topo *topo)
{
	struct kt_cpus nodes;

	read_list(text, NODE "/online", &nodes);
	for_each_in(id, &nodes) index_of(topo, (int)id);
	if (topo->nr_nodes < 2) {
		make_flat(topo);
		return;
	}
	for (unsigned i = 0; i < topo->nr_nodes; i++) {
		memset(&topo->node_cpus[i], 0, sizeof(topo->node_cpus[i]));
		topo->nr_node_cpus[i] = 0;
		if (is_in(&nodes, (unsigned)topo->ids[i]))
			read_node(text, topo, (int)i, &nodes);
	}
}

/* ---- cores ---- */

static bool read_siblings(char *text, unsigned cpu, struct kt_cpus *siblings)
{
	char name[96];

	snprintf(name, sizeof(name), CPU "/cpu%u/topology/core_cpus_list", cpu);
	if (read_list(text, name, siblings))
		return true;
	/* Its name before Linux 5.3. */
	snprintf(name, sizeof(name), CPU "/cpu%u/topology/thread_siblings_list",
		 cpu);
	return read_list(text, name, siblings);
}

/* If the kernel does not tell, assume that all CPUs are like the first one. */
static bool has_siblings(char *text, const struct kt_cpus *online)
{
	struct kt_cpus siblings;

	if (system_text(text, LIST_BYTES, CPU "/smt/active") > 0)
		return text[0] == '1';
	return read_siblings(text, next_in(online, 0), &siblings) &&
	       cpus_count(&siblings) > 1;
}

/* Read once for each core, not for each CPU. */
static void read_cores(char *text, struct topo *topo,
		       const struct kt_cpus *online)
{
	struct kt_cpus siblings, left = *online;

	topo->cores.core = NULL;
	if (!has_siblings(text, online))
		return;
	for (unsigned cpu = 0; cpu < KT_CPUS_MAX; cpu++)
		topo->core[cpu] = (uint16_t)cpu;
	for_each_in(cpu, &left)
	{
		if (!read_siblings(text, cpu, &siblings))
			continue;
		for_each_in(sibling, &siblings)
		{
			if (sibling <= cpu || !is_in(&left, sibling))
				continue;
			topo->core[sibling] = (uint16_t)cpu;
			cpus_clear(&left, sibling);
			topo->cores.core = topo->core;
		}
	}
}

/* ---- unequal cores ---- */

/* Intel's: what is not one of the fast ones has an event source of its own. */
static bool read_atoms(char *text, struct kt_cpus *slow)
{
	struct kt_cpus lowest;

	if (!read_list(text, "/sys/devices/cpu_core/cpus", slow))
		return false;
	read_list(text, "/sys/devices/cpu_atom/cpus", slow);
	read_list(text, "/sys/devices/cpu_lowpower/cpus", &lowest);
	for_each_in(cpu, &lowest) cpus_set(slow, cpu);
	return true;
}

static uint64_t read_capacity(unsigned cpu)
{
	uint64_t capacity;
	char path[FILE_PATH];

	snprintf(path, sizeof(path), "%s" CPU "/cpu%u/cpu_capacity", file_root,
		 cpu);
	return file_number(path, &capacity) ? capacity : 0;
}

/* Elsewhere the kernel tells what each CPU is worth. */
static void read_capacities(const struct kt_cpus *online, struct kt_cpus *slow)
{
	uint64_t capacity, most = read_capacity(next_in(online, 0));

	memset(slow, 0, sizeof(*slow));
	if (!most)
		return;
	for_each_in(cpu, online)
	{
		capacity = read_capacity(cpu);
		most = KT_MAX(most, capacity);
	}
	for_each_in(cpu, online)
	{
		capacity = read_capacity(cpu);
		if (capacity && capacity < UINT32_MAX &&
		    capacity * SLOW_DENOMINATOR < most * SLOW_NUMERATOR)
			cpus_set(slow, cpu);
	}
}

static void read_kinds(char *text, struct topo *topo,
		       const struct kt_cpus *online)
{
	struct kt_cpus fast = *online;

	if (!read_atoms(text, &topo->slow))
		read_capacities(online, &topo->slow);
	cpus_narrow(&topo->slow, online);
	for_each_in(cpu, &topo->slow) cpus_clear(&fast, cpu);
	/* Slow means: slower than another one here. */
	topo->cores.slow = cpus_count(&topo->slow) && cpus_count(&fast)
				   ? topo->slow.words
				   : NULL;
}

/* ---- all of it ---- */

unsigned topo_count_cpus(void)
{
	int saved = errno;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	errno = saved;
	return cpus > 0 ? (unsigned)cpus : 1;
}

static unsigned count_cpus(const struct kt_cpus *online)
{
	return *file_root ? KT_MAX(cpus_count(online), 1) : topo_count_cpus();
}

void topo_read(struct topo *topo, const struct topo *before)
{
	char *text = malloc(LIST_BYTES);
	struct kt_cpus online;

	memset(&online, 0, sizeof(online));
	if (text)
		read_list(text, CPU "/online", &online);
	topo->nr_cpus = count_cpus(&online);
	topo->cores.nr_words = KT_CPUS_MAX / 64;
	topo->cores.core = NULL;
	topo->cores.slow = NULL;
	begin_nodes(topo, before);
	if (!text) {
		make_flat(topo);
		return;
	}
	read_nodes(text, topo);
	if (cpus_count(&online)) {
		read_cores(text, topo, &online);
		read_kinds(text, topo, &online);
	}
	free(text);
}

static uint64_t add_mark(uint64_t mark, const char *name)
{
	char path[FILE_PATH];

	snprintf(path, sizeof(path), "%s%s", file_root, name);
	return file_mark(path, mark);
}

/* Over the two lists. */
uint64_t topo_mark(void)
{
	uint64_t mark = add_mark(FILE_MARK, CPU "/online");

	mark = add_mark(mark, NODE "/online");
	return mark > TOPO_MARK_NONE ? mark : TOPO_MARK_NONE + 1;
}
