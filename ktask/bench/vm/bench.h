/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the measurements inside a guest's kernel share.
 */
#ifndef KTASK_BENCH_VM_H
#define KTASK_BENCH_VM_H

#include <linux/types.h>

/* Kinds of work on the units of a range; a unit is a page. */
enum cost {
	COST_UNIFORM,
	COST_SKEWED, /* the last sixteenth costs sixteen times as much */
	COST_REMOTE, /* a page costs three times as much from another node */
};

#define REMOTE_TIMES 3
#define NODES_MAX 8

struct memory {
	unsigned long
		nr; /* units, equally many of each node, node after node */
	struct page **pages;
	unsigned int nr_nodes;
	enum cost cost;
	atomic_long_t remote; /* units that a CPU of another node did */
	/* Units that a CPU of the same node did, and how long they took. */
	atomic64_t near[NODES_MAX], near_ns[NODES_MAX];
};

int memory_alloc(struct memory *memory, unsigned long nr);
void memory_free(struct memory *memory);

/* memory_reset - nothing is counted yet */
void memory_reset(struct memory *memory);

/*
 * memory_share - units of another node that a job had to do for all its threads
 * to end together, as unequally fast as they were on their own node
 *
 * Between two nodes; 0 otherwise.
 */
unsigned long memory_share(struct memory *memory);

/* memory_clear - units [start, end) as addresses; a thread function */
int memory_clear(void *start, void *end, void *arg);

/*
 * padata_run - one job the way that padata does it: equal pieces, four for each
 * thread, taken under one lock, by threads of a workqueue and the caller
 */
int padata_run(unsigned long nr, unsigned long min_chunk, unsigned int threads,
	       int (*func)(void *start, void *end, void *arg), void *arg);

#endif /* KTASK_BENCH_VM_H */
