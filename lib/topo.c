/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * NUMA nodes from hwloc, loaded when it matters.
 *
 * hwloc is opened at run time, by the first job that splits, and only where
 * there is more than one node (or a recorded topology is given): loading it
 * and its tree takes 1.5 ms on 2 CPUs and grows with the machine, which a
 * program that never runs a large job must not pay at its start.  libnuma
 * takes a constructor's 0.2 ms in every program and knows neither cores nor
 * recorded topologies.  Without hwloc, or with one node, the machine is flat.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "core/deps.h"
#include "lib/topo.h"

#define LOCAL_DISTANCE 10
#define REMOTE_DISTANCE 20

static struct topo topo;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The calls that are used, by name; none of hwloc's inline helpers. */
struct hwloc_calls {
	__typeof__(&hwloc_topology_init) topology_init;
	__typeof__(&hwloc_topology_destroy) topology_destroy;
	__typeof__(&hwloc_topology_set_all_types_filter) set_all_types_filter;
	__typeof__(&hwloc_topology_load) topology_load;
	__typeof__(&hwloc_get_type_depth) get_type_depth;
	__typeof__(&hwloc_get_nbobjs_by_depth) get_nbobjs_by_depth;
	__typeof__(&hwloc_get_obj_by_depth) get_obj_by_depth;
	__typeof__(&hwloc_bitmap_next) bitmap_next;
	__typeof__(&hwloc_distances_get_by_type) distances_get_by_type;
	__typeof__(&hwloc_distances_release) distances_release;
};

static bool load_calls(void *lib, struct hwloc_calls *calls)
{
	static const char *const names[] = {
		"hwloc_topology_init",
		"hwloc_topology_destroy",
		"hwloc_topology_set_all_types_filter",
		"hwloc_topology_load",
		"hwloc_get_type_depth",
		"hwloc_get_nbobjs_by_depth",
		"hwloc_get_obj_by_depth",
		"hwloc_bitmap_next",
		"hwloc_distances_get_by_type",
		"hwloc_distances_release",
	};
	void **slots = (void **)calls;

	_Static_assert(sizeof(names) / sizeof(*names) ==
			       sizeof(*calls) / sizeof(void *),
		       "one name for each call");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		slots[i] = dlsym(lib, names[i]);
		if (!slots[i])
			return false;
	}
	return true;
}

static void make_flat(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	topo.nr_cpus = cpus > 0 ? (unsigned)cpus : 1;
	topo.nr_nodes = 1;
	topo.nodes[0].id = 0;
	topo.nodes[0].nr_cpus = topo.nr_cpus;
	memset(&topo.nodes[0].cpus, 0xff, sizeof(topo.nodes[0].cpus));
	for (unsigned a = 0; a < TOPO_NODES_MAX; a++)
		for (unsigned b = 0; b < TOPO_NODES_MAX; b++)
			topo.distance[a][b] =
				a == b ? LOCAL_DISTANCE : REMOTE_DISTANCE;
}

static void read_node(const struct hwloc_calls *calls, hwloc_obj_t obj,
		      struct topo_node *node)
{
	int cpu = -1;

	node->id = (int)obj->os_index;
	memset(&node->cpus, 0, sizeof(node->cpus));
	while ((cpu = calls->bitmap_next(obj->cpuset, cpu)) >= 0)
		cpus_set(&node->cpus, (unsigned)cpu);
	node->nr_cpus = cpus_count(&node->cpus);
}

static void read_distances(const struct hwloc_calls *calls,
			   hwloc_topology_t tree)
{
	struct hwloc_distances_s *table;
	unsigned nr = 1;

	if (calls->distances_get_by_type(tree, HWLOC_OBJ_NUMANODE, &nr, &table,
					 HWLOC_DISTANCES_KIND_MEANS_LATENCY,
					 0) ||
	    !nr)
		return;
	for (unsigned i = 0; i < table->nbobjs * table->nbobjs; i++) {
		unsigned a = table->objs[i / table->nbobjs]->logical_index;
		unsigned b = table->objs[i % table->nbobjs]->logical_index;

		if (a < TOPO_NODES_MAX && b < TOPO_NODES_MAX)
			topo.distance[a][b] = (uint16_t)table->values[i];
	}
	calls->distances_release(tree, table);
}

static void read_tree(const struct hwloc_calls *calls, hwloc_topology_t tree)
{
	int depth = calls->get_type_depth(tree, HWLOC_OBJ_NUMANODE);
	unsigned nr = calls->get_nbobjs_by_depth(tree, depth);

	/* Nodes past the limit count as any node. */
	nr = KT_MIN(nr, TOPO_NODES_MAX);
	for (unsigned i = 0; i < nr; i++)
		read_node(calls, calls->get_obj_by_depth(tree, depth, i),
			  &topo.nodes[i]);
	if (nr)
		topo.nr_nodes = nr;
	read_distances(calls, tree);
}

static void load_hwloc(void)
{
	void *lib = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
	struct hwloc_calls calls;
	hwloc_topology_t tree;

	if (!lib)
		return;
	if (!load_calls(lib, &calls) || calls.topology_init(&tree))
		goto close;
	calls.set_all_types_filter(tree, HWLOC_TYPE_FILTER_KEEP_NONE);
	if (!calls.topology_load(tree))
		read_tree(&calls, tree);
	calls.topology_destroy(tree);
close:
	dlclose(lib);
}

/* Is the list of online nodes more than one number? */
static bool many_nodes(void)
{
	int fd = open("/sys/devices/system/node/online", O_RDONLY | O_CLOEXEC);
	char list[64];
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, list, sizeof(list));
	close(fd);
	for (ssize_t i = 0; i < len; i++)
		if (list[i] == '-' || list[i] == ',')
			return true;
	return false;
}

static void load(void)
{
	make_flat();
	if (many_nodes() || secure_getenv("HWLOC_XMLFILE"))
		load_hwloc();
}

const struct topo *topo_get(void)
{
	int saved = errno;

	pthread_once(&once, load);
	errno = saved;
	return &topo;
}

int topo_node_index(int id)
{
	const struct topo *machine = topo_get();

	for (unsigned i = 0; i < machine->nr_nodes; i++)
		if (machine->nodes[i].id == id)
			return (int)i;
	return -1;
}

int topo_here(void)
{
	unsigned cpu, node;

	return getcpu(&cpu, &node) ? KT_NO_NODE : (int)node;
}

unsigned kt_node_distance(int a, int b)
{
	int i = topo_node_index(a), j = topo_node_index(b);

	if (i < 0 || j < 0)
		return a == b ? LOCAL_DISTANCE : REMOTE_DISTANCE;
	return topo.distance[i][j];
}
