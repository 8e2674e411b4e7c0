/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Pinning memory for a device behind an IOMMU: what is pinned and charged when a
 * mapping was made, taken back, or failed.
 *
 * That the IOMMU maps the right pages shows when they are unmapped: type1 asks it which
 * pages to unpin, and the kernel warns of an address that is not mapped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts.h"
#include "failing.h"
#include "device_mappings.h"

#define LEN (160 * MIB)

static void tell_charges(const char *when)
{
	tell_fact_number(pinned_pages(), "vfio %s: pages pinned", when);
	tell_fact_number(number_in("/proc/self/status", "VmLck:"),
			 "vfio %s: KiB locked", when);
	tell_fact_number(number_in("/proc/self/status", "VmPin:"),
			 "vfio %s: KiB pinned", when);
}

/* ---- mappings ---- */

static void map_and_unmap(const char *name, char *addr, size_t len,
			  uint64_t iova)
{
	char when[80];

	tell_fact_number(map_for_device(addr, len, iova), "vfio %s: errno",
			 name);
	tell_charges(name);
	tell_fact_number(map_for_device(addr, len, iova),
			 "vfio %s: errno, again", name);
	tell_fact_number(unmap_for_device(len, iova), "vfio %s: unmapped",
			 name);
	snprintf(when, sizeof(when), "%s, unmapped", name);
	tell_charges(when);
}

/* Otherwise equal facts of it would mean nothing. */
static void check_pins_are_counted(char *addr)
{
	long before = pinned_pages();
	int error = map_for_device(addr, PAGE, 0);

	check_that(!error && pinned_pages() == before + 1,
		   "a page that is pinned is counted: errno %d", error);
	unmap_for_device(PAGE, 0);
	madvise(addr, PAGE, MADV_DONTNEED);
}

static void map_anonymous(void)
{
	char *addr = map_memory(LEN, MADV_NOHUGEPAGE);

	check_pins_are_counted(addr);
	map_and_unmap("absent small pages", addr, LEN, 0);
	populate_memory(addr, LEN);
	map_and_unmap("present small pages", addr, LEN, 0);
	check_that(keeps_contents(addr, LEN), "memory keeps its contents");
	/* Neither address is that of a large page, and they differ. */
	map_and_unmap("odd addresses", addr + 3 * PAGE, LEN - 8 * PAGE,
		      GIB + 5 * PAGE);
	map_and_unmap("one page", addr, PAGE, 0);
	/* No page of the IOMMU's lies on both sides. */
	map_and_unmap("across a GiB", addr, LEN, GIB - LEN / 2);
	check_that(keeps_contents(addr, LEN),
		   "memory keeps its contents in parts");
	munmap(addr, LEN);
	addr = map_memory(LEN, MADV_HUGEPAGE);
	map_and_unmap("absent large pages", addr, LEN, 0);
	munmap(addr, LEN);
}

static void map_hugetlb(void)
{
	size_t len = 40 * HUGE;
	char *addr;

	pool_set(&pool_2m, 40);
	addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	check_that(addr != MAP_FAILED, "huge pages are there");
	map_and_unmap("huge pages", addr, len, 0);
	munmap(addr, len);
	pool_set(&pool_2m, 0);
}

/* Wherever the hole is. */
static void map_with_hole(void)
{
	char name[60];

	for (unsigned i = 0; i < 9; i++) {
		char *addr = map_memory(LEN, MADV_NOHUGEPAGE);
		size_t hole = i < 8 ? LEN / 8 * i : LEN - PAGE;

		munmap(addr + hole, PAGE);
		snprintf(name, sizeof(name), "a hole at %zu MiB", hole >> 20);
		tell_fact_number(map_for_device(addr, LEN, 0), "vfio %s: errno",
				 name);
		tell_charges(name);
		tell_fact_number(unmap_for_device(LEN, 0), "vfio %s: unmapped",
				 name);
		munmap(addr, LEN);
	}
}

/* To the end of all addresses, which has no number, and where a user has none. */
static void map_what_nobody_has(void)
{
	static const struct {
		const char *name;
		uintptr_t from;
	} ranges[] = {
		{ "the end of all addresses", -(uintptr_t)LEN },
		{ "the last page of all", -(uintptr_t)PAGE },
		{ "the kernel's half", (uintptr_t)1 << 63 },
		{ "the first page", 0 },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		uintptr_t from = ranges[i].from;
		size_t len = -from && -from < LEN ? -from : LEN;

		map_and_unmap(ranges[i].name, (char *)from, len, 0);
	}
}

static void map_beyond_limit(void *arg)
{
	char *addr = arg;

	if (!limit_locked_memory(LEN / 2))
		_exit(1);
	tell_fact_number(map_for_device(addr, LEN, 0),
			 "vfio beyond a limit: errno");
	tell_charges("beyond a limit");
	map_and_unmap("up to a limit", addr, LEN / 2, 0);
	map_and_unmap("below a limit", addr, LEN / 2 - PAGE, 0);
	tell_fact_number(map_for_device(addr, LEN / 4, 0),
			 "vfio a part of a limit: errno");
	tell_fact_number(map_for_device(addr + LEN / 4, LEN / 2, LEN / 4),
			 "vfio more than the rest of a limit: errno");
	tell_charges("a part of a limit");
	tell_fact_number(unmap_for_device(LEN / 4, 0),
			 "vfio a part of a limit: unmapped");
	tell_charges("a part of a limit, unmapped");
}

static void map_until_killed(char *addr)
{
	for (;;) {
		map_for_device(addr, LEN, 0);
		unmap_for_device(LEN, 0);
		madvise(addr, LEN, MADV_DONTNEED);
	}
}

static void kill_in_the_middle(void)
{
	for (int i = 0; i < 5; i++) {
		char *addr = map_memory(LEN, MADV_NOHUGEPAGE);
		pid_t pid = fork();

		if (pid == 0)
			map_until_killed(addr);
		usleep(100000 + 37000 * (useconds_t)i);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		/* The container is this process's as well. */
		unmap_all();
		munmap(addr, LEN);
	}
	tell_charges("killed in the middle");
}

/* ---- failing allocations ---- */

/* Return: whether a mapping was made, or none. */
static bool map_whole_or_not(char *addr, unsigned percent, int *error)
{
	begin_failing(percent);
	let_fail("self", true);
	*error = map_for_device(addr, LEN, 0);
	let_fail("self", false);
	end_failing();
	if (!*error)
		return unmap_for_device(LEN, 0) == LEN;
	return (*error == ENOMEM || *error == EFAULT) &&
	       unmap_for_device(LEN, 0) <= 0;
}

/* In kernels that can; the memory is there, or is not. */
static void check_failing_mappings(void)
{
	long pins = pinned_pages();
	unsigned wrong = 0, failed = 0;
	int error, last = 0;

	if (!allocations_can_fail())
		return;
	for (int i = 0; i < 2 * NR_FAILING_PERCENTS; i++) {
		char *addr = map_memory(LEN, MADV_NOHUGEPAGE);

		if (i % 2)
			populate_memory(addr, LEN);
		if (!map_whole_or_not(addr, failing_percents[i / 2], &error))
			wrong++, last = error;
		failed += !!error;
		munmap(addr, LEN);
	}
	note_line("failing allocations: %u of %d mappings failed", failed,
		  2 * NR_FAILING_PERCENTS);
	check_that(!wrong && failed,
		   "a mapping without memory fails as a whole (%u wrong: %d)",
		   wrong, last);
	check_that(pinned_pages() == pins &&
			   !number_in("/proc/self/status", "VmLck:"),
		   "nothing stays pinned after failing allocations");
}

/* ---- helpers ---- */

static char *helped_memory;

static void renew_memory(void)
{
	unmap_for_device(LEN, GIB - LEN / 2);
	if (helped_memory)
		munmap(helped_memory, LEN);
	helped_memory = map_memory(LEN, MADV_NOHUGEPAGE);
}

static void map_helped_memory(void)
{
	map_for_device(helped_memory, LEN, GIB - LEN / 2);
}

static void unmap_helped_memory(void)
{
	unmap_for_device(LEN, GIB - LEN / 2);
}

static void check_all_helped(void)
{
	check_helped(renew_memory, map_helped_memory,
		     "helpers pin memory for a device");
	renew_memory();
	check_helped(map_helped_memory, unmap_helped_memory,
		     "helpers unpin memory of a device");
	unmap_helped_memory();
	munmap(helped_memory, LEN);
}

void tell_vfio_facts(void)
{
	bool opened = open_container();

	check_that(opened, "there is a device");
	if (!opened)
		return;
	check_all_helped();
	tell_charges("nothing mapped");
	map_anonymous();
	map_hugetlb();
	map_with_hole();
	map_what_nobody_has();
	check_that(
		!run_child(map_beyond_limit, map_memory(LEN, MADV_NOHUGEPAGE)),
		"a limit of locked memory can be set");
	tell_charges("after a limit");
	check_failing_mappings();
	kill_in_the_middle();
}

struct mapping {
	const char *name;
	int advice;
	enum { ABSENT, PRESENT, SCATTERED } pages;
	bool unmapped; /* how long that takes */
};

/* No page lies behind its neighbour: the order of touches has no two in a row. */
static void populate_scattered(char *addr, size_t len)
{
	size_t pages = len / PAGE, step = 617;

	for (size_t i = 0; i < pages; i++)
		addr[i * step % pages * PAGE] = 1;
}

static int time_mapping(struct times *times, const struct mapping *mapping)
{
	char *addr = map_memory(LEN, mapping->advice);
	uint64_t iova = GIB - LEN / 2;
	struct timing timing;

	if (mapping->pages == PRESENT)
		populate_memory(addr, LEN);
	else if (mapping->pages == SCATTERED)
		populate_scattered(addr, LEN);
	timing = begin_timing();
	if (map_for_device(addr, LEN, iova))
		return -1;
	if (mapping->unmapped)
		timing = begin_timing();
	else
		end_timing(times, &timing);
	unmap_for_device(LEN, iova);
	if (mapping->unmapped)
		end_timing(times, &timing);
	munmap(addr, LEN);
	return 0;
}

void measure_vfio(int rounds)
{
	static const struct mapping cases[] = {
		{ "vfio absent 4 KiB", MADV_NOHUGEPAGE, ABSENT, false },
		{ "vfio present 4 KiB", MADV_NOHUGEPAGE, PRESENT, false },
		/* Each page is a run of its own, and was charged alone. */
		{ "vfio scattered 4 KiB", MADV_NOHUGEPAGE, SCATTERED, false },
		{ "vfio absent 2 MiB", MADV_HUGEPAGE, ABSENT, false },
		{ "vfio unmap 4 KiB", MADV_NOHUGEPAGE, PRESENT, true },
	};

	if (!open_container())
		return;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct times times = { .name = cases[i].name };

		while (measure_wanted(times.name) && times.nr < rounds &&
		       !time_mapping(&times, &cases[i]))
			;
		tell_times(&times);
	}
}
