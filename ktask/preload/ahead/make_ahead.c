/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes a window by one job of the library, whose chunks are some blocks each.  Only
 * helpers work on it.  The watcher begins the job and is woken when it ends.
 *
 * In which order its pages are made is in ahead/window_blocks.h.
 *
 * On a machine with several nodes, pages are made on the node of the program's last
 * page.
 *
 * Locking: large_mappings.h.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ahead/idle_clock.h"
#include "ahead/window_blocks.h"
#include "preload/ahead/ahead.h"
#include "preload/shim.h"
#include "util/clock.h"
#include "util/running_threads.h"

/* This much must be left after the program has touched all that is watched. */
#define RESERVE_BYTES ((size_t)32 << 20)
/* No machine touches more bytes in a nanosecond. */
#define TOUCHED_PER_NS 64
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

/* Find which of at most 512 pages are present, in the order of addresses. */
static bool find_present(const struct large_mapping *mapping, size_t from,
			 size_t to, unsigned char *present)
{
	return !syscall(SYS_mincore, range_address(mapping, from, to),
			(to - from) * AHEAD_PAGE_BYTES, present);
}

static bool is_present(const struct large_mapping *mapping, size_t at)
{
	unsigned char present = 0;

	return find_present(mapping, at, at + 1, &present) && present & 1;
}

/*
 * Return: 1 if the program has come to its beginning before, 0 or -errno.
 *
 * Of shared memory, pages that others have made are put into the page table.  Whether the
 * program has done so itself could only be read from a file.
 */
static int make_piece(struct large_mapping *mapping, size_t from, size_t to)
{
	unsigned char present[AHEAD_BLOCK_PAGES];
	size_t nr = to - from, absent = 0;
	int error = 0;

	if (!large_mapping_enter(mapping))
		return -ECANCELED;
	if (!find_present(mapping, from, to, present))
		error = -ENOMEM;
	else if (!mapping->waste &&
		 present[mapping->window.down ? nr - 1 : 0] & 1)
		error = 1;
	else
		absent = touch_count_absent(present, nr);
	if (!error && (absent || mapping->waste) &&
	    real_madvise(range_address(mapping, from, to),
			 nr * AHEAD_PAGE_BYTES, MADV_POPULATE_WRITE))
		error = -errno;
	if (!error)
		atomic_fetch_add(&mapping->made_pages, absent);
	large_mapping_leave(mapping);
	return error;
}

/*
 * Do others want the CPU?  Then the rest of the window is left to the program.  Short
 * preemptions do not count: the watcher and the kernel's own threads cause them all
 * the time.
 */
static bool was_preempted(void *arg, uint64_t idle_since_ns)
{
	struct large_mapping *mapping = arg;

	if (!mapping->unyielding &&
	    ahead_was_off_cpu(idle_since_ns, ahead_idle_clock_ns()))
		atomic_store(&mapping->preempted, true);
	return atomic_load(&mapping->preempted);
}

/*
 * Huge pages that nobody told of
 *
 * Go's runtime, and whoever else makes the system call itself, advises huge pages and
 * the shim does not see it.  Then a small page is made as a huge one, and with it the
 * pages that are left to the program as marks: it would always seem to have arrived.  It
 * shows in the rest of the block.
 */

/* Beside a piece so many pages were absent: no program touches them while it is made, if
 * the helper kept its CPU but for so long. */
#define BESIDE_LEAST 256
#define BESIDE_OFF_CPU_NS 20000

/* Return: how many pages of all 2 MiB are absent, or -1: it is not what it was. */
static long absent_in_block(const struct large_mapping *mapping,
			    const struct window_block *block)
{
	unsigned char present[AHEAD_BLOCK_PAGES];

	return find_present(mapping, block->edge,
			    block->edge + AHEAD_BLOCK_PAGES, present)
		       ? (long)touch_count_absent(present, AHEAD_BLOCK_PAGES)
		       : -1;
}

/*
 * make_and_compare - make the piece by @make
 * @block: if it is the hole of a window of huge pages, what is taken for the program's
 * advice by mistake costs little, and the program would seem to have filled the hole.
 *
 * Return: what @make returned, or -EAGAIN: its pages are huge ones, and so are the next
 * windows; or the helper lost its CPU and cannot tell them from what the program touched:
 * the rest of this window is left to it.
 */
static int make_and_compare(struct large_mapping *mapping,
			    const struct window_block *block, size_t from,
			    size_t to,
			    int (*make)(struct large_mapping *mapping,
					size_t from, size_t to))
{
	uint64_t idle_ns = ahead_idle_clock_ns();
	int error, none = ADVICE_NONE;
	long beside = 0;

	if (ahead_may_be_huge_unseen(mapping) &&
	    window_block_is_within(block, mapping->tracker.nr_pages))
		beside = absent_in_block(mapping, block) - (long)(to - from);
	error = make(mapping, from, to);
	if (error || beside < BESIDE_LEAST || absent_in_block(mapping, block))
		return error;
	if (mapping->huge ||
	    ahead_idle_clock_ns() < idle_ns + BESIDE_OFF_CPU_NS) {
		atomic_compare_exchange_strong(&mapping->advice, &none,
					       ADVICE_HUGE);
		atomic_fetch_add(&mapping->made_pages, (unsigned long)beside);
	}
	atomic_store(&mapping->turned_huge, true);
	return -EAGAIN;
}

/* Make the pages at the steps of a walk. */
static int make_steps(struct large_mapping *mapping, size_t from, size_t to)
{
	const struct touch_window *window = &mapping->window;
	size_t over = (from - window->start) % window->step;
	size_t first = over ? from + window->step - over : from;
	int error = 0;

	if (!large_mapping_enter(mapping))
		return -ECANCELED;
	if (first < to && is_present(mapping, first))
		error = 1;
	for (size_t at = first; at < to && !error; at += window->step) {
		if (!touch_window_has(window, at) || is_present(mapping, at))
			continue;
		if (real_madvise(range_address(mapping, at, at + 1),
				 AHEAD_PAGE_BYTES, MADV_POPULATE_WRITE))
			error = -errno;
		else
			atomic_fetch_add(&mapping->made_pages, 1);
	}
	large_mapping_leave(mapping);
	return error;
}

static int make_small_piece(void *arg, const struct window_block *block,
			    size_t from, size_t to)
{
	struct large_mapping *mapping = arg;
	int (*make)(struct large_mapping * mapping, size_t from, size_t to) =
		mapping->window.step ? make_steps : make_piece;

	/* One piece of a block tells: the first one, at its end. */
	return to == block->end
		       ? make_and_compare(mapping, block, from, to, make)
		       : make(mapping, from, to);
}

static int make_huge_piece(void *arg, const struct window_block *block,
			   size_t from, size_t to)
{
	struct large_mapping *mapping = arg;
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bool is_hole = block->marked;
	int error =
		is_hole && to == block->end
			? make_and_compare(mapping, block, from, to, make_piece)
			: make_piece(mapping, from, to);

	if (!error && !is_hole &&
	    clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns >=
		    mapping->slow_block_ns)
		atomic_fetch_add(&mapping->nr_slow_blocks, 1);
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

static int make_blocks(void *start, void *end, void *arg)
{
	struct large_mapping *mapping = arg;
	const struct window_maker maker = {
		.window = &mapping->window,
		.is_huge = mapping->huge,
		.mapping = mapping,
		.was_preempted = was_preempted,
		.make_piece =
			mapping->huge ? make_huge_piece : make_small_piece,
	};
	uint64_t idle_ns = ahead_idle_clock_ns();
	unsigned nr;
	int error;

	if (mapping->node >= 0)
		set_node(mapping->node);
	error = window_make_blocks(&maker, (size_t)start, (size_t)end, idle_ns,
				   &nr);
	if (mapping->node >= 0)
		set_node(-1);
	if (atomic_fetch_sub(&mapping->nr_blocks, nr) == nr)
		ahead_wake_watcher();
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

/* Return: the node of the page before the window; -1: there is one node, or it is not
 * known. */
static int find_node(const struct large_mapping *mapping)
{
	static int several = -1; /* the watcher's */
	size_t at = mapping->window.start;
	int node = -1;

	if (several < 0)
		several = has_nodes();
	/* For an absent page the call would make the page. */
	if (!several || !at || !is_present(mapping, at - 1) ||
	    syscall(SYS_get_mempolicy, &node, NULL, 0ul,
		    range_address(mapping, at - 1, at),
		    POLICY_NODE | POLICY_ADDR))
		return -1;
	return node;
}

/*
 * Is there memory for all watched pages that the program may still touch, and a reserve?
 * Reading how much is available takes 0.1 ms.  So it is read again only when the program
 * may have touched the surplus since then.
 */
bool ahead_has_memory(struct large_mapping *mapping)
{
	static size_t available; /* the watcher's */
	static uint64_t read_ns;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	size_t needed = large_mappings_untouched() + RESERVE_BYTES;

	if (available < needed + (now_ns - read_ns) * TOUCHED_PER_NS) {
		available = shim_available_bytes();
		read_ns = now_ns;
	}
	mapping->short_of_memory = available < needed;
	return !mapping->short_of_memory;
}

bool ahead_has_memory_for(size_t bytes)
{
	return shim_available_bytes() >= bytes + RESERVE_BYTES;
}

bool ahead_make(struct large_mapping *mapping)
{
	struct ktask_node blocks = {
		(void *)WINDOW_BLOCK_UNITS,
		WINDOW_BLOCK_UNITS * window_count_blocks(&mapping->window),
		NUMA_NO_NODE,
	};
	struct ktask_job *job;
	struct ktask_ctl ctl;

	mapping->nr_blocks = (unsigned)window_count_blocks(&mapping->window);
	mapping->preempted = false;
	mapping->slow_block_ns = ahead_slow_block_ns();
	mapping->nr_slow_blocks = 0;
	mapping->turned_huge = false;
	mapping->unyielding = overload_is_ignored();
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
