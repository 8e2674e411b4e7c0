/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * NUMA nodes, and how the runtime's cores are laid out on CPUs (cores.c).  Does not own the
 * state of a core (park.h).
 *
 * Locking: rt.h.
 */
#ifndef RUNTIME_CORES_H
#define RUNTIME_CORES_H

#include <sched.h>

#include <ktask/runtime.h>

/* A NUMA node with cores; I. */
struct node {
	int id; /* as the kernel numbers it */
	unsigned first_cache, end_cache;
	unsigned short *near; /* the other nodes, nearest first */
};

/* Fills in cores, nodes and caches; -EINVAL without a CPU, -ENOMEM */
int cores_read(const struct ktrt_options *options);
/* Lay out cores on the first @wanted of @cpus in the order of nodes and caches (0: as many as
 * ktask's limits allow).  cores_read() calls it with real CPUs, tests with made-up ones. */
int cores_lay_out(const cpu_set_t *cpus, int nr_cpus, unsigned wanted);
void cores_free(void);
/* Index of a NUMA node of the kernel's number, or -1 */
int cores_node(int node);

#endif /* RUNTIME_CORES_H */
