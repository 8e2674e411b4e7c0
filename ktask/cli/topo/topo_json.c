/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * `ktask topo --json`.  CPUs are lists as the kernel writes them ("0-3,8"),
 * distances stand in the order of the nodes, null where unknown.
 */
#include <stdlib.h>

#include "cli/ui/text.h"
#include "topo_command.h"

static json_t *distances_json(const struct topo *topo, hwloc_obj_t node)
{
	json_t *array = json_array();
	hwloc_obj_t other = NULL;
	unsigned distance;

	while ((other = hwloc_get_next_obj_by_type(
			topo->hwloc, HWLOC_OBJ_NUMANODE, other))) {
		distance = topo_distance(topo, node->os_index, other->os_index);
		json_array_append_new(array, distance ? json_integer(distance)
						      : json_null());
	}
	return array;
}

static json_t *nodes_json(const struct topo *topo)
{
	json_t *array = json_array();
	hwloc_obj_t node = NULL;
	char *cpus;

	while ((node = hwloc_get_next_obj_by_type(topo->hwloc,
						  HWLOC_OBJ_NUMANODE, node))) {
		cpus = NULL;
		hwloc_bitmap_list_asprintf(&cpus, node->cpuset);
		json_array_append_new(
			array,
			json_pack("{s:i s:s s:i s:I s:o}", "node",
				  node->os_index, "cpus", cpus ? cpus : "",
				  "nr_cpus", hwloc_bitmap_weight(node->cpuset),
				  "memory_bytes",
				  (json_int_t)topo_memory(topo, node),
				  "distances", distances_json(topo, node)));
		free(cpus);
	}
	return array;
}

static json_t *caches_json(const struct topo *topo)
{
	struct topo_cache caches[TOPO_CACHES];
	unsigned i, nr = topo_caches(topo, caches);
	json_t *array = json_array();

	for (i = 0; i < nr; i++)
		json_array_append_new(
			array,
			json_pack("{s:s s:I s:i s:i s:i}", "name",
				  caches[i].name, "size_bytes",
				  (json_int_t)caches[i].size_bytes,
				  "line_bytes", caches[i].line_bytes, "count",
				  caches[i].nr, "cpus_each", caches[i].cpus));
	return array;
}

static json_t *limits_json(const struct topo *topo)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < topo->nr_limits; i++)
		json_array_append_new(
			array,
			json_pack("{s:s s:i s:o}", "name", topo->limits[i].name,
				  "threads", topo->limits[i].threads, "why",
				  text_json(topo->limits[i].why)));
	return array;
}

static json_t *engines_json(const struct topo *topo)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < topo->nr_engines; i++) {
		const struct topo_engine *e = &topo->engines[i];

		json_array_append_new(
			array, json_pack("{s:s s:s s:o}", "operation",
					 e->operation, "engine", e->engine.name,
					 "why", text_json(e->engine.why)));
	}
	return array;
}

json_t *topo_json(const struct topo *topo)
{
	return json_pack("{s:o s:o s:o s:o s:i s:o}", "machine",
			 machine_json(&topo->machine), "nodes",
			 nodes_json(topo), "caches", caches_json(topo),
			 "limits", limits_json(topo), "threads", topo->threads,
			 "engines", engines_json(topo));
}
