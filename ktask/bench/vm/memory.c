// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages to clear, whose cost can be uneven.
 *
 * An emulated machine has no slow memory: a page of another node is cleared three
 * times instead.
 */
#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "bench.h"

#define SKEWED_PART 16
#define SKEWED_TIMES 16

static unsigned int count_times(struct memory *memory, unsigned long unit,
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
	u64 start_ns = ktime_get_ns();
	int nid = numa_node_id();

	for (unit = (unsigned long)start; unit < (unsigned long)end; unit++) {
		struct page *page = memory->pages[unit];
		bool remote = page_to_nid(page) != numa_node_id();
		unsigned int n = count_times(memory, unit, remote);

		far += remote;
		while (n--)
			clear_page(page_address(page));
		if (unit % 64 == 0)
			cond_resched();
	}
	atomic_long_add(far, &memory->remote);
	if (!far && nid < NODES_MAX) {
		atomic64_add(end - start, &memory->near[nid]);
		atomic64_add(ktime_get_ns() - start_ns, &memory->near_ns[nid]);
	}
	return 0;
}

void memory_reset(struct memory *memory)
{
	unsigned int i;

	atomic_long_set(&memory->remote, 0);
	for (i = 0; i < NODES_MAX; i++) {
		atomic64_set(&memory->near[i], 0);
		atomic64_set(&memory->near_ns[i], 0);
	}
}

/* When the fast one has done its half, the slow one has done @part of its own,
 * in thousandths.  The rest they do together, the fast one that much slower. */
unsigned long memory_share(struct memory *memory)
{
	u64 a_units = atomic64_read(&memory->near[0]);
	u64 b_units = atomic64_read(&memory->near[1]);
	u64 a_ns = atomic64_read(&memory->near_ns[0]);
	u64 b_ns = atomic64_read(&memory->near_ns[1]);
	u64 times = memory->cost == COST_REMOTE ? REMOTE_TIMES : 1;
	u64 a, b, part;

	if (memory->nr_nodes != 2 || !a_ns || !b_ns)
		return 0;
	a = div64_u64(a_units << 30, a_ns);
	b = div64_u64(b_units << 30, b_ns);
	if (!a || !b)
		return 0;
	part = div64_u64(min(a, b) * 1000, max(a, b));
	return div64_u64(memory->nr / 2 * (1000 - part), 1000 + times * part);
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
