/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What `ktask topo` shows, and the two ways to print it.
 */
#ifndef KTASK_CLI_TOPO_H
#define KTASK_CLI_TOPO_H

#include <ktask/ktask.h>
#include <ktask/ops.h>

#include "cli/bench/machine.h"
#include "util/least_limit.h"

#define TOPO_ENGINES 16

/** struct topo_engine - who does the large jobs of an operation */
struct topo_engine {
	const char *operation;
	struct ktask_engine engine;
};

struct topo {
	hwloc_topology_t hwloc;
	struct machine machine;
	struct ktask_limit limits[LEAST_LIMIT_MOST];
	unsigned nr_limits;
	unsigned threads; /* the least of the limits */
	struct topo_engine engines[TOPO_ENGINES]; /* where there is a choice */
	unsigned nr_engines;
};

/** topo_print - tables for people (topo_text.c) */
void topo_print(const struct topo *topo);

/** topo_json - one object, a new reference (topo_json.c) */
json_t *topo_json(const struct topo *topo);

/**
 * topo_distance - relative distance of two nodes, 10 to itself
 *
 * @from, @to: operating system's numbers.  Return: 0 where it is unknown.
 */
unsigned topo_distance(const struct topo *topo, unsigned from, unsigned to);

/** topo_memory - bytes of a node's own memory */
uint64_t topo_memory(const struct topo *topo, hwloc_obj_t node);

/** struct topo_cache - caches of one kind and size, counted */
struct topo_cache {
	const char *name; /* "L2", "L1d" */
	uint64_t size_bytes;
	unsigned line_bytes;
	unsigned nr; /* how many there are */
	unsigned cpus; /* that share one */
};

#define TOPO_CACHES 16

/** topo_caches - farthest level first; returns how many kinds there are */
unsigned topo_caches(const struct topo *topo,
		     struct topo_cache caches[TOPO_CACHES]);

#endif /* KTASK_CLI_TOPO_H */
