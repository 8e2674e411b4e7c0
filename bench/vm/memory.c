// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages to clear, whose cost can be uneven.
 *
 * An emulated machine has no slow memory: a page of another node is cleared three
 * times instead.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "bench.h"

#define SKEWED_PART 16
#define SKEWED_TIMES 16
#define REMOTE_TIMES 3

static unsigned int times(struct memory *memory, unsigned long unit,
			  bool remote)
{
	switch (memory->cost) {
	case COST_SKEWED:
		return unit >= memory->nr - memory->nr / SKEWED_PART
			       ? SKEWED_TIMES
			       : 1;
	case COST_REMOTE:
		return remote ? REMOTE_TIMES : 1;
	default:
		return 1;
	}
}

int memory_clear(void *start, void *end, void *arg)
{
	struct memory *memory = arg;
	unsigned long unit, far = 0;

	for (unit = (unsigned long)start; unit < (unsigned long)end; unit++) {
		struct page *page = memory->pages[unit];
		bool remote = page_to_nid(page) != numa_node_id();
		unsigned int n = times(memory, unit, remote);

		far += remote;
		while (n--)
			clear_page(page_address(page));
		if (unit % 64 == 0)
			cond_resched();
	}
	atomic_long_add(far, &memory->remote);
	return 0;
}

void memory_free(struct memory *memory)
{
	unsigned long i;

	for (i = 0; memory->pages && i < memory->nr; i++)
		if (memory->pages[i])
			__free_page(memory->pages[i]);
	kvfree(memory->pages);
}

int memory_alloc(struct memory *memory, unsigned long nr)
{
	unsigned long i = 0;
	int nid;

	memory->nr_nodes = num_node_state(N_MEMORY);
	memory->nr = nr - nr % memory->nr_nodes;
	memory->pages = kvcalloc(nr, sizeof(*memory->pages), GFP_KERNEL);
	if (!memory->pages)
		return -ENOMEM;
	for_each_node_state(nid, N_MEMORY)
	{
		unsigned long end = i + memory->nr / memory->nr_nodes;

		for (; i < end; i++) {
			memory->pages[i] = alloc_pages_node(
				nid, GFP_KERNEL | __GFP_THISNODE, 0);
			if (!memory->pages[i])
				return -ENOMEM;
		}
	}
	return 0;
}
