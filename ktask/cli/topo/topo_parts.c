/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Parts of hwloc's tree that both forms of `ktask topo` show.
 * Machines with unequal cores have several kinds of one level.
 */

#include "topo_command.h"

static const struct {
	hwloc_obj_type_t type;
	const char *name;
} cache_levels[] = {
	{ HWLOC_OBJ_L5CACHE, "L5" },  { HWLOC_OBJ_L4CACHE, "L4" },
	{ HWLOC_OBJ_L3CACHE, "L3" },  { HWLOC_OBJ_L2CACHE, "L2" },
	{ HWLOC_OBJ_L1CACHE, "L1d" }, { HWLOC_OBJ_L1ICACHE, "L1i" },
};

static unsigned add_cache(struct topo_cache *caches, unsigned nr,
			  const struct topo_cache *found)
{
	unsigned i;

	for (i = 0; i < nr; i++)
		if (caches[i].name == found->name &&
		    caches[i].size_bytes == found->size_bytes &&
		    caches[i].cpus == found->cpus)
			break;
	if (i == TOPO_CACHES)
		return nr;
	if (i == nr)
		caches[nr++] = *found;
	caches[i].nr++;
	return nr;
}

unsigned topo_caches(const struct topo *topo,
		     struct topo_cache caches[TOPO_CACHES])
{
	struct topo_cache found;
	unsigned nr = 0;
	hwloc_obj_t cache;

	for (unsigned i = 0; i < sizeof(cache_levels) / sizeof(cache_levels[0]);
	     i++) {
		cache = NULL;
		while ((cache = hwloc_get_next_obj_by_type(
				topo->hwloc, cache_levels[i].type, cache))) {
			found = (struct topo_cache){
				.name = cache_levels[i].name,
				.size_bytes = cache->attr->cache.size,
				.line_bytes = cache->attr->cache.linesize,
				.cpus = hwloc_bitmap_weight(cache->cpuset),
			};
			nr = add_cache(caches, nr, &found);
		}
	}
	return nr;
}

static hwloc_obj_t node_of(const struct topo *topo, unsigned os_index)
{
	return hwloc_get_numanode_obj_by_os_index(topo->hwloc, os_index);
}

unsigned topo_distance(const struct topo *topo, unsigned from, unsigned to)
{
	hwloc_obj_t from_node = node_of(topo, from),
		    to_node = node_of(topo, to);
	struct hwloc_distances_s *distances = NULL;
	hwloc_uint64_t there = 0, back;
	unsigned nr = 1;

	if (hwloc_distances_get_by_name(topo->hwloc, "NUMALatency", &nr,
					&distances, 0) ||
	    !nr)
		return from == to ? 10 : 0;
	if (hwloc_distances_obj_pair_values(distances, from_node, to_node,
					    &there, &back))
		there = 0;
	hwloc_distances_release(topo->hwloc, distances);
	return there;
}

uint64_t topo_memory(const struct topo *topo, hwloc_obj_t node)
{
	/* Some kernels count a node short; the only one has everything. */
	if (topo->machine.nodes == 1)
		return topo->machine.memory_bytes;
	return node->attr->numanode.local_memory;
}
