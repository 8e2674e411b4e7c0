/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The machine, as far as one must know it to judge a figure.
 */
#ifndef KTASK_CLI_MACHINE_H
#define KTASK_CLI_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include <hwloc.h>
#include <jansson.h>

#define MACHINE_TEXT 384

struct machine {
	char cpu[96]; /* model */
	unsigned packages, cores, cpus, nodes;
	uint64_t memory_bytes;
	char kernel[96];
	char thp[16]; /* transparent huge pages: always, madvise, never, "" */
	char governor[32]; /* of CPU 0; "" where there is none */
	bool this_system; /* false: hwloc was given another machine's file */
};

/**
 * machine_topology - load hwloc's view, with CPUs that are not ours as well
 *
 * Return: 0 or -errno; to be ended with hwloc_topology_destroy().
 */
int machine_topology(hwloc_topology_t *topology);

void machine_read(struct machine *machine, hwloc_topology_t topology);

/** machine_json - a new reference */
json_t *machine_json(const struct machine *machine);

/** machine_text - one line for people; returns @buf */
const char *machine_text(const struct machine *machine, char buf[MACHINE_TEXT]);

#endif /* KTASK_CLI_MACHINE_H */
