/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of `ktask top` share: options and the loop (cmd_top.c), one
 * snapshot of the machine (top_read.c), how it is shown (top_text.c, top_json.c).
 */
#ifndef KTASK_CLI_TOP_H
#define KTASK_CLI_TOP_H

#include <stdbool.h>
#include <stdio.h>

#include <hwloc.h>
#include <jansson.h>
#include <ktask/ktask.h>

#define TOP_NODES 64

struct top_job {
	struct ktask_job_info info; /* its name made printable */
	char user[33];
	bool bytes; /* an operation of ours: its units are bytes */
	bool seen; /* its process is, so that its helpers can be found */
	double rate; /* units a second, since the snapshot before if there was one */
	unsigned nodes[TOP_NODES]; /* helpers that run there, by index */
};

/** A snapshot. */
struct top {
	struct top_job *jobs;
	unsigned nr_jobs;
	struct ktask_permits_info permits;
	unsigned nr_nodes; /* at most TOP_NODES */
	unsigned node_ids[TOP_NODES];
};

/**
 * top_read - take a snapshot of all jobs of the machine
 * @before: the snapshot before, for rates; or NULL
 *
 * Return: 0 or -ENOMEM.  To be ended with top_free().
 */
int top_read(struct top *top, hwloc_topology_t topology,
	     const struct top *before);
void top_free(struct top *top);

/**
 * top_kernel_jobs - what ktask.ko does now (top_kernel.c)
 *
 * Return: how many were filled in, at most @capacity; 0 without the module or the right
 * to read it.
 */
unsigned top_kernel_jobs(struct ktask_job_info *jobs, unsigned capacity);

/** top_node - helpers of all jobs on node number @index */
unsigned top_node(const struct top *top, unsigned index);

/**
 * top_not_seen - what this snapshot may have missed, one line for each @index
 *
 * Return: @buf, or NULL behind the last.
 */
const char *top_not_seen(const struct top *top, unsigned index, char buf[128]);

/** top_print - @rows, @columns: of the screen; 0: as much as there is
 * @end: of each line */
void top_print(FILE *out, const struct top *top, unsigned rows,
	       unsigned columns, const char *end);

json_t *top_json(const struct top *top); /* a new reference */

#endif /* KTASK_CLI_TOP_H */
