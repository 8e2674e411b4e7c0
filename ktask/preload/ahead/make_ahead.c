/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Making a window: one job of the library, done by its helpers alone, a chunk of
 * which is some blocks.  The watcher begins it and polls.
 *
 * Program and helper shall not make the same pages: two threads that fault side by
 * side are slower than one.  So the first page of each block is left to the program,
 * and tells where it is.  A helper leaves the block in which the program is, and the
 * next one, to the program, and goes on behind that.  Blocks of huge pages have no
 * such page; there a block that is present and was not made here tells the same.
 *
 * Pieces are short, because the lock of the address space is held for each.
 *
 * On a machine with several nodes pages are made where the program's last one is.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/ahead/ahead.h"
#include "preload/shim.h"

#define PIECE_PAGES ((size_t)64)
/* So much must be left besides all that the program may touch of what is watched. */
#define SPARE_BYTES ((size_t)32 << 20)
#define NODES_MAX 1024

/* The kernel's names for these, which <numaif.h> has. */
#define POLICY_DEFAULT 0
#define POLICY_PREFERRED 1
#define POLICY_NODE 1
#define POLICY_ADDR 2
#define POLICY_ALLOWED 4

static void *page_address(const struct large_mapping *mapping, size_t page)
{
	return (void *)(mapping->start + page * AHEAD_PAGE_BYTES);
}

/* [@from, @to) in the direction of the window: the pages of the mapping. */
static void *range_address(const struct large_mapping *mapping, size_t from,
			   size_t to)
{
	return page_address(mapping, mapping->window.down
					     ? mapping->tracker.nr_pages - to
					     : from);
}

/* Return: how many of at most 512 pages are present; -1: not to be known. */
static int count_present(const struct large_mapping *mapping, size_t from,
			 size_t to)
{
	unsigned char present[AHEAD_BLOCK_PAGES];
	int nr = 0;

	if (syscall(SYS_mincore, range_address(mapping, from, to),
		    (to - from) * AHEAD_PAGE_BYTES, present))
		return -1;
	for (size_t i = 0; i < to - from; i++)
		nr += present[i] & 1;
	return nr;
}

static bool is_present(const struct large_mapping *mapping, size_t at)
{
	return count_present(mapping, at, at + 1) > 0;
}

/* Return: 0 or -errno. */
static int make_piece(struct large_mapping *mapping, size_t from, size_t to)
{
	int before, error = 0;

	if (!large_mapping_enter(mapping))
		return -ECANCELED;
	before = count_present(mapping, from, to);
	if (before < 0)
		error = -ENOMEM;
	else if ((size_t)before < to - from &&
		 real_madvise(range_address(mapping, from, to),
			      (to - from) * AHEAD_PAGE_BYTES,
			      MADV_POPULATE_WRITE))
		error = -errno;
	if (!error)
		atomic_fetch_add(&mapping->made_pages,
				 to - from - (size_t)before);
	large_mapping_leave(mapping);
	return error;
}

struct block {
	size_t start, end; /* in the direction of the window */
	bool marked;
};

static struct block get_block(const struct large_mapping *mapping,
			      size_t number)
{
	const struct touch_window *window = &mapping->window;
	struct block block = {
		.start = window->start + number * AHEAD_BLOCK_PAGES,
	};

	block.end = block.start + AHEAD_BLOCK_PAGES;
	if (block.end > window->end)
		block.end = window->end;
	block.marked = block.start == window->mark;
	return block;
}

static int leave_pages(struct large_mapping *mapping, size_t nr)
{
	atomic_fetch_add(&mapping->left_pages, nr);
	return 0;
}

/* The CPU is wanted by others: the rest of the window is left to the program. */
static bool was_preempted(struct large_mapping *mapping)
{
	static __thread long seen = -1;
	struct rusage usage;

	if (mapping->unyielding || getrusage(RUSAGE_THREAD, &usage))
		return false;
	if (seen >= 0 && usage.ru_nivcsw > seen)
		atomic_store(&mapping->preempted, true);
	seen = usage.ru_nivcsw;
	return atomic_load(&mapping->preempted);
}

static int make_small_block(struct large_mapping *mapping,
			    const struct block *block)
{
	size_t at = block->start + (block->marked ? AHEAD_STRIP_PAGES : 1);
	int error = 0;

	if (block->start >= AHEAD_BLOCK_PAGES &&
	    is_present(mapping, block->start - AHEAD_BLOCK_PAGES))
		return leave_pages(mapping, block->end - block->start);
	while (at < block->end && !error && !was_preempted(mapping)) {
		size_t end = block->end - at < PIECE_PAGES ? block->end
							   : at + PIECE_PAGES;

		if (is_present(mapping, block->start))
			return leave_pages(mapping, block->end - at);
		error = make_piece(mapping, at, end);
		at = end;
	}
	return error;
}

/* Blocks that were made here are noted, by their number plus 1.  The one before the
 * window is the program's. */
static bool was_made_here(const struct large_mapping *mapping, size_t number)
{
	return atomic_load(&mapping->made_blocks) & (1ull << number);
}

static int make_huge_block(struct large_mapping *mapping,
			   const struct block *block, size_t number)
{
	bool program = block->start >= AHEAD_BLOCK_PAGES &&
		       !was_made_here(mapping, number) &&
		       is_present(mapping, block->start - 1);
	int error;

	if (block->marked || program || is_present(mapping, block->start))
		return leave_pages(mapping, block->end - block->start);
	if (was_preempted(mapping))
		return leave_pages(mapping, block->end - block->start);
	error = make_piece(mapping, block->start, block->end);
	if (!error)
		atomic_fetch_or(&mapping->made_blocks, 1ull << (number + 1));
	return error;
}

static void set_node(int node)
{
	unsigned long nodes[NODES_MAX / 64] = { 0 };

	if (node < 0 || node >= NODES_MAX) {
		syscall(SYS_set_mempolicy, POLICY_DEFAULT, NULL, 0ul);
		return;
	}
	nodes[node / 64] = 1ul << node % 64;
	syscall(SYS_set_mempolicy, POLICY_PREFERRED, nodes,
		(unsigned long)NODES_MAX);
}

/*
 * Two positions for each block, of which the second does nothing: a job that cannot be
 * divided has no helper.
 */
#define BLOCK_UNITS 2

static int make_blocks(void *start, void *end, void *arg)
{
	struct large_mapping *mapping = arg;
	int error = 0;

	if (mapping->node >= 0)
		set_node(mapping->node);
	for (size_t at = (size_t)start; at < (size_t)end && !error; at++) {
		size_t number = (at - BLOCK_UNITS) / BLOCK_UNITS;
		struct block block = get_block(mapping, number);

		if (at % BLOCK_UNITS)
			continue;
		error = mapping->huge ? make_huge_block(mapping, &block, number)
				      : make_small_block(mapping, &block);
	}
	if (mapping->node >= 0)
		set_node(-1);
	return error;
}

static bool has_nodes(void)
{
	unsigned long nodes[NODES_MAX / 64 + 1] = { 0 };
	int mode, nr = 0;

	if (syscall(SYS_get_mempolicy, &mode, nodes, NODES_MAX + 1ul, NULL,
		    POLICY_ALLOWED))
		return false;
	for (size_t i = 0; i < NODES_MAX / 64; i++)
		nr += __builtin_popcountl(nodes[i]);
	return nr > 1;
}

/* Of the page behind which the window begins; -1: there is one node, or nobody
 * knows. */
static int find_node(const struct large_mapping *mapping)
{
	static int several = -1; /* the watcher's */
	size_t at = mapping->window.start;
	int node = -1;

	if (several < 0)
		several = has_nodes();
	/* Asked of a page that is absent, it would make that. */
	if (!several || !at || !is_present(mapping, at - 1) ||
	    syscall(SYS_get_mempolicy, &node, NULL, 0ul,
		    range_address(mapping, at - 1, at),
		    POLICY_NODE | POLICY_ADDR))
		return -1;
	return node;
}

/* All that is watched may be touched yet; beyond that nothing is made. */
static bool has_memory(void)
{
	return shim_available_bytes() >=
	       large_mappings_untouched() + SPARE_BYTES;
}

static size_t count_blocks(const struct touch_window *window)
{
	return (window->end - window->start + AHEAD_BLOCK_PAGES - 1) /
	       AHEAD_BLOCK_PAGES;
}

bool ahead_make(struct large_mapping *mapping)
{
	struct ktask_node blocks = {
		(void *)BLOCK_UNITS,
		BLOCK_UNITS * count_blocks(&mapping->window),
		NUMA_NO_NODE,
	};
	struct ktask_job *job;
	struct ktask_ctl ctl;

	mapping->short_of_memory = !has_memory();
	if (mapping->short_of_memory)
		return false;
	mapping->made_blocks = 0;
	mapping->preempted = false;
	mapping->unyielding = ahead_ignores_load();
	mapping->node = find_node(mapping);
	blocks.nid = mapping->node;
	mapping->made_before = mapping->made_pages;
	mapping->result = (struct ktask_result)KTASK_RESULT_INIT;
	ktask_ctl_init(&ctl, make_blocks, mapping, 1);
	ktask_ctl_set_name(&ctl, "ahead");
	ktask_ctl_set_result(&ctl, &mapping->result);
	if (ktask_start_numa(&job, &blocks, 1, &ctl))
		return false;
	atomic_store(&mapping->job, job);
	return true;
}

bool ahead_made(struct large_mapping *mapping, bool cancel)
{
	struct ktask_job *job = atomic_load(&mapping->job);

	if (!job)
		return true;
	if (cancel)
		ktask_cancel(job);
	else if (ktask_poll(job, NULL))
		return false;
	/* First, so that the child of a fork does not wait for it as well. */
	atomic_store(&mapping->job, NULL);
	ktask_wait(job);
	return true;
}
