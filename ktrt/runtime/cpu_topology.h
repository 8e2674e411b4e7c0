/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef RUNTIME_CPU_TOPOLOGY_H
#define RUNTIME_CPU_TOPOLOGY_H

#include <stdbool.h>

/* Where a CPU is, by the kernel's numbers. */
struct cpu_location {
	int cpu, node;
	int cache; /* the first CPU that shares it; -1: not told */
};

/* Put before /sys: a test's machine. */
extern const char *topology_root;

/*
 * cpu_locations_read - find node and cache of @nr CPUs, whose numbers are given
 *
 * Sorts them: CPUs of one node are adjacent, and in a node those of one cache.
 */
void cpu_locations_read(struct cpu_location *locations, unsigned nr);

/*
 * node_distances_read - from a node to each of @nr nodes @to
 *
 * A nearer node has a smaller number.
 */
void node_distances_read(int from, const int *to, unsigned nr, int *distances);

#endif /* RUNTIME_CPU_TOPOLOGY_H */
