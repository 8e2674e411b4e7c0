/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory that tests map, of the kinds that the kernel unmaps differently, and what
 * all processes together have of it.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "facts.h"

#define HUGETLB_PAGES 10
#define PIECE (8 * MIB)
#define READS_MAX 50
#define READ_PAUSE_US 100000

/* ---- contents ---- */

void populate_memory(char *addr, size_t len)
{
	for (size_t i = 0; i < len; i += PAGE)
		addr[i] = (char)(i / PAGE);
}

bool keeps_pages(const char *addr, size_t first, size_t nr)
{
	for (size_t i = first; i < first + nr; i++)
		if (addr[i * PAGE] != (char)i)
			return false;
	return true;
}

bool keeps_contents(const char *addr, size_t len)
{
	return keeps_pages(addr, 0, len / PAGE);
}

/* ---- mappings ---- */

char *map_memory(size_t len, int advice)
{
	char *addr = mmap(NULL, len + HUGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *aligned = (char *)(((uintptr_t)addr + HUGE - 1) & ~(HUGE - 1));

	if (addr == MAP_FAILED)
		return NULL;
	munmap(addr, (size_t)(aligned - addr));
	munmap(aligned + len, HUGE - (size_t)(aligned - addr));
	madvise(aligned, len, advice);
	return aligned;
}

static bool map_again(char *addr, size_t len, int flags, int fd)
{
	return mmap(addr, len, PROT_READ | PROT_WRITE, MAP_FIXED | flags, fd,
		    0) == addr;
}

static char *map_small(size_t *len)
{
	char *addr = map_memory(*len, MADV_NOHUGEPAGE);

	if (addr)
		populate_memory(addr, *len);
	return addr;
}

static bool has_huge_pages(void)
{
	return number_in("/proc/self/smaps_rollup", "AnonHugePages:") > 0;
}

static char *map_huge(size_t *len)
{
	char *addr = map_memory(*len, MADV_HUGEPAGE);

	if (addr)
		populate_memory(addr, *len);
	return has_huge_pages() ? addr : NULL;
}

/* In one mapping. */
static char *map_small_and_huge(size_t *len)
{
	size_t small = *len;
	char *addr;

	*len *= 2;
	addr = map_memory(*len, MADV_HUGEPAGE);
	if (!addr)
		return NULL;
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	populate_memory(addr, small);
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	populate_memory(addr + small, *len - small);
	return has_huge_pages() ? addr : NULL;
}

/* One page in four, and a gap of page tables that are not there. */
static char *map_sparse(size_t *len)
{
	size_t part = *len * 2;
	char *addr;

	*len = 5 * part;
	addr = map_memory(*len, MADV_NOHUGEPAGE);
	for (size_t i = 0; addr && i < part; i += 4 * PAGE) {
		addr[i] = 1;
		addr[4 * part + i] = 1;
	}
	return addr;
}

static char *map_locked(size_t *len)
{
	char *addr = map_small(len);

	return addr && !mlock(addr, *len) ? addr : NULL;
}

static char *map_shared(size_t *len)
{
	char *addr = map_memory(*len, MADV_NOHUGEPAGE);

	if (!addr || !map_again(addr, *len, MAP_SHARED | MAP_ANONYMOUS, -1))
		return NULL;
	populate_memory(addr, *len);
	return addr;
}

/* A file's pages in the first half, and copies of such in the second. */
static char *map_private_file(size_t *len)
{
	char *addr = map_memory(*len, MADV_NOHUGEPAGE);
	int fd = memfd_create("facts", 0);
	bool mapped = addr && !ftruncate(fd, (off_t)*len) &&
		      map_again(addr, *len, MAP_PRIVATE, fd);
	long sum = 0;

	close(fd);
	if (!mapped)
		return NULL;
	for (size_t i = 0; i < *len / 2; i += PAGE)
		sum += *(volatile char *)(addr + i);
	populate_memory(addr + *len / 2, *len / 2);
	return sum ? NULL : addr;
}

/* Many mappings, none of which is large, and a large one. */
static char *map_pieces(size_t *len)
{
	size_t half = *len;
	char *addr;

	*len *= 2;
	addr = map_small(len);
	for (size_t i = 0; addr && i < half; i += 2 * PIECE)
		if (mprotect(addr + i, PIECE, PROT_READ))
			return NULL;
	return addr;
}

/* Private, of the pool of huge pages, and shared: unmapped by one call. */
static char *map_neighbours(size_t *len)
{
	size_t part = *len, huge = HUGETLB_PAGES * HUGE;
	char *addr;

	*len = 2 * part + huge;
	addr = map_memory(*len, MADV_NOHUGEPAGE);
	if (!addr ||
	    !map_again(addr + part, huge,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1) ||
	    !map_again(addr + part + huge, part, MAP_SHARED | MAP_ANONYMOUS,
		       -1))
		return NULL;
	populate_memory(addr, *len);
	return addr;
}

const struct memory_kind memory_kinds[NR_MEMORY_KINDS] = {
	{ "small pages", map_small },
	{ "huge pages", map_huge },
	{ "small pages beside huge ones", map_small_and_huge },
	{ "few pages", map_sparse },
	{ "locked pages", map_locked },
	{ "shared pages", map_shared },
	{ "a private file", map_private_file },
	{ "many mappings", map_pieces },
	{ "neighbours of a pool", map_neighbours },
};

/* ---- what there is of it ---- */

enum use_index {
	USE_ANON,
	USE_MAPPED,
	USE_SHMEM,
	USE_LOCKED,
	USE_TABLES,
	USE_HUGE,
};

static const char *const use_names[NR_USES] = {
	[USE_ANON] = "nr_anon_pages ",
	[USE_MAPPED] = "nr_mapped ",
	[USE_SHMEM] = "nr_shmem ",
	[USE_LOCKED] = "nr_mlock ",
	[USE_TABLES] = "nr_page_table_pages ",
	[USE_HUGE] = "nr_anon_transparent_hugepages ",
};

/*
 * A CPU that idles keeps the top page table of the process that it has run, even of a
 * dead one, and Linux 7 counts that: run on each.
 */
static void leave_dead_processes(void)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (CPU_ISSET(cpu, &all))
			sched_setaffinity(0, sizeof(one), &one);
	}
	sched_setaffinity(0, sizeof(all), &all);
}

void read_use(struct use *use)
{
	leave_dead_processes();
	/* Linux 7 frees page tables after a grace period: wait for it. */
	write_text("/sys/module/rcutree/parameters/do_rcu_barrier", "1");
	/* CPUs give up the pages on lists of their own; 4 is silence. */
	write_text("/proc/sys/vm/drop_caches", "4");
	write_text("/proc/sys/vm/drop_caches", "1");
	write_text("/proc/sys/vm/stat_refresh", "1");
	for (size_t i = 0; i < NR_USES; i++) {
		use->pages[i] = number_in("/proc/vmstat", use_names[i]);
		if (use->pages[i] < 0)
			check_that(false, "the kernel counts %s", use_names[i]);
	}
	use->pages[NR_USES] = pool_number(&pool_2m, -1, "free_hugepages");
}

static bool counts_top_tables(void)
{
	struct utsname kernel;

	return !uname(&kernel) && atoi(kernel.release) >= 7;
}

/* What idle CPUs kept all the same, and those on which a process is about to end: now, or
 * when it was counted before. */
static long without_dead_processes(long nr_tables)
{
	if (!counts_top_tables())
		return nr_tables;
	return labs(nr_tables) > 2 * sysconf(_SC_NPROCESSORS_ONLN) ? nr_tables
								   : 0;
}

/*
 * The top table of a process that the OOM killer chose is freed by a work item, which RCU
 * begins: Linux 7 counts it until that has run.
 */
static void read_use_since(struct use *now, const struct use *before)
{
	read_use(now);
	for (int i = 0; i < READS_MAX && counts_top_tables() &&
			now->pages[USE_TABLES] > before->pages[USE_TABLES];
	     i++) {
		usleep(READ_PAUSE_US);
		read_use(now);
	}
}

void tell_use_since(const struct use *before, const char *what,
		    const char *when)
{
	struct use now;

	read_use_since(&now, before);
	for (size_t i = 0; i < NR_USES; i++) {
		long more = now.pages[i] - before->pages[i];

		tell_fact_number(i == USE_TABLES ? without_dead_processes(more)
						 : more,
				 "%s, %s: %smore", what, when, use_names[i]);
	}
	tell_fact_number(now.pages[NR_USES] - before->pages[NR_USES],
			 "%s, %s: free huge pages more", what, when);
}
