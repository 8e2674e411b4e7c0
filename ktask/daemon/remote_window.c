/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See remote_window.h.  ahead/window_blocks.h has the order in which pages are made.
 *
 * If the process has advised huge pages, one touch makes more than one page, and no file
 * tells that of a single mapping.  Making a piece in the middle of a block then also makes
 * the pages before it, the mark included.  The job ends there.
 *
 * Behaves badly if the process meanwhile unmaps memory and maps other memory there: each
 * helper may make pages of that, at most of one piece.
 *
 * Locking: what a window shares with its helpers is atomic; see remote_mapping.h.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ahead/idle_clock.h"
#include "ahead/window_blocks.h"
#include "daemon/remote_window.h"
#include "util/running_threads.h"

/* Enough for a job that helpers are made for. */
#define READY_UNITS 1000

static int events_fd = -1;
static unsigned nr_windows; /* that are being made */

static int make_nothing(void *start, void *end, void *arg)
{
	(void)start;
	(void)end;
	(void)arg;
	return 0;
}

int remote_window_init(void)
{
	struct ktask_ctl ctl;

	events_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (events_fd < 0)
		return errno;
	ktask_ctl_init(&ctl, make_nothing, NULL, 1);
	return -ktask_run(NULL, READY_UNITS, &ctl);
}

int remote_window_events(void)
{
	return events_fd;
}

void remote_window_clear_events(void)
{
	eventfd_t value;

	eventfd_read(events_fd, &value);
}

/* [@from, @to) in the direction of the window. */
static uintptr_t range_address(const struct remote_mapping *mapping,
			       size_t from, size_t to)
{
	size_t page =
		mapping->window.down ? mapping->tracker.nr_pages - to : from;

	return mapping->start + page * REMOTE_PAGE;
}

static int read_range(const struct remote_mapping *mapping, size_t from,
		      size_t to, unsigned char *bits)
{
	return remote_read_pages(mapping->process,
				 range_address(mapping, from, to), to - from,
				 bits);
}

static bool is_page_there(const struct remote_mapping *mapping, size_t at)
{
	unsigned char bits = 0;

	return !read_range(mapping, at, at + 1, &bits) && bits & PAGE_PRESENT;
}

/* Runs of absent pages, and nothing that is there: a child of a fork may share it. */
static int make_absent(struct remote_mapping *mapping, uintptr_t addr,
		       const unsigned char *bits, size_t nr)
{
	int error = 0;

	for (size_t i = 0; i < nr && !error; i++) {
		size_t run = 0;

		while (i + run < nr && !(bits[i + run] & PAGE_PRESENT))
			run++;
		if (!run)
			continue;
		error = remote_make_pages(mapping->process,
					  addr + i * REMOTE_PAGE, run);
		if (!error)
			atomic_fetch_add(&mapping->made_pages, run);
		i += run;
	}
	return error;
}

/* Return: 1 if the program has come to its beginning before, 0 or -errno. */
static int make_piece(struct remote_mapping *mapping, size_t from, size_t to)
{
	unsigned char bits[AHEAD_BLOCK_PAGES];
	size_t nr = to - from;
	int error = read_range(mapping, from, to, bits);

	if (error)
		return error;
	if (bits[mapping->window.down ? nr - 1 : 0] & PAGE_PRESENT)
		return 1;
	return make_absent(mapping, range_address(mapping, from, to), bits, nr);
}

/*
 * Do others want the CPU?  Then the rest of the window is left to the program.  Short
 * preemptions do not count: the kernel's own threads cause them all the time.
 */
static bool was_preempted(void *arg, uint64_t idle_since_ns)
{
	struct remote_mapping *mapping = arg;

	if (!overload_is_ignored() &&
	    ahead_was_off_cpu(idle_since_ns, ahead_idle_clock_ns()))
		atomic_store(&mapping->preempted, true);
	return atomic_load(&mapping->preempted);
}

/* The piece at the end of a block, and whether it brought what lies before it. */
static int make_last_piece(struct remote_mapping *mapping, size_t block,
			   size_t at, size_t end)
{
	bool absent = at > block + 1 && !is_page_there(mapping, block) &&
		      !is_page_there(mapping, at - 1);
	int error = make_piece(mapping, at, end);

	if (!error && absent && is_page_there(mapping, at - 1)) {
		atomic_store(&mapping->grew, true);
		return -EOVERFLOW;
	}
	return error;
}

static int make_window_piece(void *arg, const struct window_block *block,
			     size_t from, size_t to)
{
	struct remote_mapping *mapping = arg;

	if (!mapping->huge && to == block->end)
		return make_last_piece(mapping, block->start, from, to);
	return make_piece(mapping, from, to);
}

static int make_blocks(void *start, void *end, void *arg)
{
	struct remote_mapping *mapping = arg;
	const struct window_maker maker = {
		.window = &mapping->window,
		.is_huge = mapping->huge,
		.mapping = mapping,
		.was_preempted = was_preempted,
		.make_piece = make_window_piece,
	};
	unsigned nr;
	int error = window_make_blocks(&maker, (size_t)start, (size_t)end,
				       ahead_idle_clock_ns(), &nr);

	if (error)
		atomic_store(&mapping->error, error);
	if (atomic_fetch_sub(&mapping->nr_blocks, nr) == nr || error)
		eventfd_write(events_fd, 1);
	return error;
}

/* Return: the node of the page before the window; -1: not known. */
static int find_node(const struct remote_mapping *mapping)
{
	size_t at = mapping->window.start;

	if (!at)
		return NUMA_NO_NODE;
	return remote_node(mapping->process,
			   range_address(mapping, at - 1, at));
}

bool remote_window_begin(struct remote_mapping *mapping)
{
	size_t nr_blocks = window_count_blocks(&mapping->window);
	struct ktask_node blocks = {
		(void *)WINDOW_BLOCK_UNITS,
		WINDOW_BLOCK_UNITS * nr_blocks,
		find_node(mapping),
	};
	struct ktask_ctl ctl;

	mapping->nr_blocks = (unsigned)nr_blocks;
	mapping->preempted = false;
	mapping->grew = false;
	mapping->error = 0;
	mapping->result = (struct ktask_result)KTASK_RESULT_INIT;
	ktask_ctl_init(&ctl, make_blocks, mapping, 1);
	ktask_ctl_set_name(&ctl, "ktaskd");
	ktask_ctl_set_result(&ctl, &mapping->result);
	if (ktask_start_numa(&mapping->job, &blocks, 1, &ctl))
		return false;
	nr_windows++;
	return true;
}

bool remote_window_end(struct remote_mapping *mapping, bool cancel)
{
	if (!mapping->job)
		return true;
	if (cancel)
		ktask_cancel(mapping->job);
	else if (ktask_poll(mapping->job, NULL))
		return false;
	ktask_wait(mapping->job);
	mapping->job = NULL;
	nr_windows--;
	return true;
}

bool remote_window_may_begin(void)
{
	return nr_windows || !cpus_are_overloaded();
}
