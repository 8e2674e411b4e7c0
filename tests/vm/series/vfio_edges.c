/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Pinning memory for a device, and every place where it may fail: a hole at each page of
 * a small range and at each large page of a long one; a limit on locked memory at each
 * part of a range; a group whose memory ends.
 *
 * And how large the pages are that the IOMMU has: the kernel counts those that its page
 * tables take.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts.h"
#include "device_mappings.h"

#define SMALL_LEN (40 * PAGE)
/* Ten chunks of a job at least: whichever thread meets the hole. */
#define LONG_LEN (80 * MIB)
#define GROUP_MAX (64 * MIB)
#define NR_LIMITS 21

/* ---- holes ---- */

/* What came of a mapping, and of what it left: "0", or what is wrong. */
static void map_what_ends(char *addr, size_t len, char *found, size_t size)
{
	long pins = pinned_pages(), unmapped;
	int error = map_for_device(addr, len, 0);
	long locked = number_in("/proc/self/status", "VmLck:");
	long more = pinned_pages() - pins;

	unmapped = unmap_for_device(len, 0);
	snprintf(found, size,
		 "errno %d, %ld pinned, %ld KiB locked, %ld unmapped", error,
		 more, locked, unmapped);
}

static void move_hole(size_t len, size_t step, const char *what)
{
	char found[200];

	for (size_t hole = 0; hole < len; hole += step) {
		char *addr = map_memory(LONG_LEN, MADV_NOHUGEPAGE);

		munmap(addr + hole, PAGE);
		map_what_ends(addr, len, found, sizeof(found));
		tell_fact(found, "vfio, a hole at %s %zu", what, hole / step);
		munmap(addr, LONG_LEN);
	}
}

/* ---- limits ---- */

struct limited {
	char *addr;
	size_t bytes;
};

static void map_under_limit(void *arg)
{
	const struct limited *limited = arg;
	char found[200];

	if (!limit_locked_memory(limited->bytes))
		_exit(1);
	map_what_ends(limited->addr, LONG_LEN, found, sizeof(found));
	tell_fact(found, "vfio, a limit of %zu KiB", limited->bytes >> 10);
}

/* Some are there already, some are not. */
static void move_limit(void)
{
	struct limited limited = { .addr = map_memory(LONG_LEN,
						      MADV_NOHUGEPAGE) };
	int unlimited = 0;

	populate_memory(limited.addr, LONG_LEN / 2);
	for (size_t i = 0; i < NR_LIMITS; i++) {
		limited.bytes = LONG_LEN / (NR_LIMITS - 1) * i;
		unlimited += !!run_child(map_under_limit, &limited);
		limited.bytes += PAGE;
		unlimited += !!run_child(map_under_limit, &limited);
	}
	check_that(!unlimited, "locked memory can be limited");
	munmap(limited.addr, LONG_LEN);
}

/* ---- a group ---- */

static void map_in_small_group(void *arg)
{
	(void)arg;
	enter_group("device");
	_exit(map_for_device(map_memory(LONG_LEN, MADV_NOHUGEPAGE), LONG_LEN,
			     0));
}

/* Who asks is killed, whichever thread was refused. */
static void map_beyond_group_limit(void)
{
	struct use before;
	long pins = pinned_pages();

	mkdir(GROUP_DIR "/device", 0755);
	check_that(
		!write_number(GROUP_DIR "/device/memory.max", (long)GROUP_MAX),
		"memory of a group with a device can be limited");
	run_child(map_in_small_group, NULL);
	unmap_all();
	read_use(&before);
	for (int i = 0; i < 5; i++) {
		tell_fact_number(run_child(map_in_small_group, NULL),
				 "vfio, a group that is full: status");
		unmap_all();
	}
	tell_fact_number(
		number_in(GROUP_DIR "/device/memory.events", "oom_kill "),
		"vfio, a group that is full: killed");
	tell_fact_number(pinned_pages() - pins,
			 "vfio, a group that is full: pages pinned");
	tell_use_since(&before, "vfio", "a group that is full");
	check_that(number_in(GROUP_DIR "/device/memory.current", NULL) <
			   8 * (long)MIB,
		   "a group that was full has nothing");
	tell_fact_number(rmdir(GROUP_DIR "/device"),
			 "vfio, a group that is full: removed");
}

void tell_vfio_edges(void)
{
	move_hole(SMALL_LEN, PAGE, "page");
	move_hole(LONG_LEN, HUGE, "large page");
	move_limit();
	map_beyond_group_limit();
}

/* ---- pages of the IOMMU ---- */

static long table_pages(void)
{
	write_text("/proc/sys/vm/stat_refresh", "1");
	return number_in("/proc/vmstat", "nr_iommu_pages ");
}

/* Each address of the device is used once, since tables may stay. */
static void tell_tables(const char *name, char *addr, size_t len, uint64_t iova)
{
	long before = table_pages();
	int error = map_for_device(addr, len, iova);

	tell_fact_number(error, "vfio, tables of %s: errno", name);
	tell_fact_number(table_pages() - before, "vfio, tables of %s: pages",
			 name);
	tell_fact_number(unmap_for_device(len, iova),
			 "vfio, tables of %s: unmapped", name);
	tell_fact_number(pinned_pages(), "vfio, tables of %s: pages pinned",
			 name);
}

static char *map_pool(const struct pool *pool, size_t len)
{
	char *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
				  (int)pool->flag,
			  -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

/* Of pages that lie beside each other by chance nothing is said. */
void tell_vfio_tables(void)
{
	long nr = pool_number(&pool_1g, -1, "free_hugepages");
	size_t len = (size_t)nr * GIB;
	char *addr;

	tell_fact_number(nr, "vfio: gigantic pages");
	check_that(nr > 0 && table_pages() >= 0,
		   "there are gigantic pages, and tables are counted");
	if (nr < 1)
		return;
	addr = map_pool(&pool_1g, len);
	check_that(addr, "gigantic pages are mapped");
	if (!addr)
		return;
	tell_tables("absent gigantic pages", addr, len, 4 * GIB);
	tell_tables("present gigantic pages", addr, len, 16 * GIB);
	/* The device's addresses do not end with a gigantic page. */
	tell_tables("gigantic pages at odd addresses", addr, len,
		    32 * GIB + 6 * MIB);
	tell_tables("a part of gigantic pages", addr + 6 * MIB, len - 8 * MIB,
		    48 * GIB + 6 * MIB);
	munmap(addr, len);
}
