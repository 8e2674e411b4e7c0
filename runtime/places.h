/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef RUNTIME_PLACES_H
#define RUNTIME_PLACES_H

#include <stdbool.h>

/* Where a CPU is, by the kernel's numbers. */
struct place {
	int cpu, node;
	int cache; /* the first CPU that shares it; -1: not told */
};

/* Put before /sys: a test's machine. */
extern const char *places_root;

/*
 * places_find - node and cache of @nr CPUs, whose numbers are given
 *
 * Sorted afterwards: those of one node, and in it of one cache, side by side.
 */
void places_find(struct place *places, unsigned nr);

/*
 * places_distances - from a node to each of @nr nodes @to
 *
 * What is nearer has less.
 */
void places_distances(int from, const int *to, unsigned nr, int *distances);

#endif /* RUNTIME_PLACES_H */
