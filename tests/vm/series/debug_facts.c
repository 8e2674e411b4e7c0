/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What only a kernel that finds errors can tell: clients whose allocations fail, and
 * memory that nobody refers to any more.  On other kernels this says nothing.
 *
 * The clients run in a process of its own, which is let fail.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "facts.h"
#include "failing.h"

#define PAGES 24
/* Enough for a job: a process with less frees it alone. */
#define PROCESS_LEN (192 * MIB)
#define LEAK_FILE "/sys/kernel/debug/kmemleak"

/* Parts of the process have failed, or done well; shared with it. */
struct counts {
	unsigned well, failed, wrong;
	int error; /* the last wrong one */
};

const unsigned failing_percents[NR_FAILING_PERCENTS] = { 1, 4, 16, 64 };

static void count_outcome(struct counts *counts, int error)
{
	if (!error)
		counts->well++;
	else if (error == ENOMEM || error == ENOSPC)
		counts->failed++;
	else
		counts->wrong++, counts->error = error;
}

static int fill_file(void)
{
	int fd = memfd_create("failing", MFD_HUGETLB | pool_2m.flag);
	int error = fd < 0 ? errno : 0;

	if (!error && fallocate(fd, 0, 0, PAGES * (off_t)HUGE))
		error = errno;
	if (fd >= 0)
		close(fd);
	return error;
}

static int use_memory(void)
{
	char *addr = mmap(NULL, PROCESS_LEN, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (addr == MAP_FAILED)
		return errno;
	madvise(addr, PROCESS_LEN, MADV_NOHUGEPAGE);
	/* What a fault cannot have it asks for again. */
	for (size_t at = 0; at < PROCESS_LEN; at += PAGE)
		addr[at] = 1;
	return munmap(addr, PROCESS_LEN) ? errno : 0;
}

/* Fewer pages than were asked for is what may come of it; numbers are read with memory. */
static int resize_pool(void)
{
	long grown, nr = pool_number(&pool_2m, -1, "nr_hugepages");

	let_fail("self", true);
	pool_set(&pool_2m, nr + PAGES);
	let_fail("self", false);
	grown = pool_number(&pool_2m, -1, "nr_hugepages");
	pool_set(&pool_2m, nr);
	if (grown < nr || grown > nr + PAGES)
		return ERANGE;
	return grown == nr + PAGES ? 0 : ENOMEM;
}

static void use_clients(void *arg)
{
	struct counts *counts = arg;

	let_fail("self", true);
	count_outcome(counts, fill_file());
	count_outcome(counts, use_memory());
	let_fail("self", false);
	count_outcome(counts, resize_pool());
}

static bool is_kasan(void)
{
	char debug[16];

	option_text("debug", debug, sizeof(debug));
	return !strcmp(debug, "kasan");
}

bool allocations_can_fail(void)
{
	bool can = can_fail();

	if (is_kasan())
		check_that(can, "this kernel can have allocations fail");
	return can;
}

void check_failing_clients(void)
{
	struct counts *counts = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;

	if (!allocations_can_fail())
		return;
	check_that(pool_set(&pool_2m, PAGES) == PAGES,
		   "there is a pool for clients whose allocations fail");
	for (int i = 0; i < NR_FAILING_PERCENTS && !status; i++) {
		begin_failing(failing_percents[i]);
		status = run_child(use_clients, counts);
		end_failing();
	}
	note_line(
		"failing allocations: %u clients did well, %u failed, %u wrong (%d)",
		counts->well, counts->failed, counts->wrong, counts->error);
	check_that(!status && !counts->wrong && counts->failed,
		   "failing allocations fail clients, and nothing else");
	check_that(pool_number(&pool_2m, -1, "free_hugepages") ==
				   pool_number(&pool_2m, -1, "nr_hugepages") &&
			   !pool_number(&pool_2m, -1, "surplus_hugepages") &&
			   !pool_set(&pool_2m, 0),
		   "the pool has all of its pages after failing allocations");
	munmap(counts, PAGE);
}

/* What was lost must have been so for five seconds, and is listed in the log. */
void check_no_leaks(void)
{
	static char text[65536];
	char *save = NULL;
	int error = 0;

	if (access(LEAK_FILE, F_OK)) {
		if (is_kasan())
			check_that(false, "this kernel looks for leaks");
		return;
	}
	for (int i = 0; i < 2 && !error; i++) {
		sleep(6);
		error = write_text(LEAK_FILE, "scan");
	}
	/* It gives up where it has no memory for what it knows. */
	check_that(!error, "memory is searched for leaks: errno %d", error);
	read_text(LEAK_FILE, text, sizeof(text));
	check_that(!text[0], "nothing was leaked");
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		note_line("%s", line);
}
