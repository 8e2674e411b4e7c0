// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fills pages of every node with several threads, each node's by its own CPUs, and
 * says what that took.  Loading the module does the work; with fail_at a chunk
 * fails, and what others had done is undone.
 */
#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/ktask_kernel.h"

static unsigned int pages = 4096;
module_param(pages, uint, 0444);
MODULE_PARM_DESC(pages, "of each node");
static int fail_at = -1;
module_param(fail_at, int, 0444);
MODULE_PARM_DESC(fail_at, "page of the first node that fails; -1: none");
static unsigned long filled;
module_param(filled, ulong, 0444);
MODULE_PARM_DESC(filled, "pages that were filled and not undone");

/* Positions are addresses of entries in this table: an array per node. */
static struct page **node_pages[MAX_NUMNODES];
static atomic_long_t nr_filled;

static int fill_pages(void *start, void *end, void *arg)
{
	struct page **page;

	for (page = start; page < (struct page **)end; page++) {
		int nid = *(const int *)arg;

		if (fail_at >= 0 && page == &node_pages[nid][fail_at]) {
			/* A chunk that fails leaves nothing behind. */
			atomic_long_sub(page - (struct page **)start,
					&nr_filled);
			return -EIO;
		}
		memset(page_address(*page), 0x5a, PAGE_SIZE);
		atomic_long_inc(&nr_filled);
	}
	return 0;
}

static void undo_fill(void *start, void *end, void *arg)
{
	atomic_long_sub((struct page **)end - (struct page **)start,
			&nr_filled);
}

/* Units are bytes of the table: chunks are whole entries because of align. */
static int fill_all(struct ktask_node *nodes, size_t nr_nodes)
{
	int first = nodes[0].nid;
	struct ktask_result result;
	DEFINE_KTASK_CTL(ctl, fill_pages, &first, 64 * sizeof(struct page *));
	int error;

	ktask_ctl_set_align(&ctl, sizeof(struct page *));
	ktask_ctl_set_undo_func(&ctl, undo_fill);
	ktask_ctl_set_result(&ctl, &result);
	error = ktask_run_numa(nodes, nr_nodes, &ctl);
	filled = atomic_long_read(&nr_filled);
	pr_info("ktask_example: %d: %lu pages, %u threads, %llu chunks, %llu "
		"us\n",
		error, filled, result.threads, result.chunks,
		div_u64(result.wall_ns, 1000));
	return error;
}

static void free_node(int nid)
{
	unsigned int i;

	for (i = 0; node_pages[nid] && i < pages && node_pages[nid][i]; i++)
		__free_page(node_pages[nid][i]);
	kvfree(node_pages[nid]);
}

static int alloc_node(int nid)
{
	unsigned int i;

	node_pages[nid] = kvcalloc(pages, sizeof(struct page *), GFP_KERNEL);
	for (i = 0; node_pages[nid] && i < pages; i++) {
		node_pages[nid][i] = alloc_pages_node(nid, GFP_KERNEL, 0);
		if (!node_pages[nid][i])
			return -ENOMEM;
	}
	return node_pages[nid] ? 0 : -ENOMEM;
}

static int __init example_init(void)
{
	struct ktask_node *nodes;
	size_t nr = 0;
	int nid, error = 0;

	nodes = kcalloc(nr_node_ids, sizeof(*nodes), GFP_KERNEL);
	if (!nodes)
		return -ENOMEM;
	for_each_node_state(nid, N_MEMORY)
	{
		error = alloc_node(nid);
		if (error)
			break;
		nodes[nr].start = node_pages[nid];
		nodes[nr].task_size = pages * sizeof(struct page *);
		nodes[nr++].nid = nid;
	}
	if (!error && nr)
		error = fill_all(nodes, nr);
	for_each_node_state(nid, N_MEMORY) free_node(nid);
	kfree(nodes);
	return error;
}

static void __exit example_exit(void)
{
}

module_init(example_init);
module_exit(example_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("an example of ktask in the kernel");
