/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Of which node the memory is that a mapping for a device has brought: the policy of the
 * caller decides, whoever brings it.
 */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "facts.h"
#include "device_mappings.h"

#define LEN (160 * MIB)
#define NR_PAGES (LEN / PAGE)
#define NODES_MAX 8
#define ELSEWHERE NODES_MAX /* absent, or of no node */

/* ---- where pages are ---- */

static void count_nodes(const char *addr, long nr[NODES_MAX + 1])
{
	static void *pages[NR_PAGES];
	static int nodes[NR_PAGES];

	for (size_t i = 0; i < NR_PAGES; i++)
		pages[i] = (void *)(addr + i * PAGE);
	memset(nr, 0, sizeof(long[NODES_MAX + 1]));
	if (syscall(SYS_move_pages, 0, NR_PAGES, pages, NULL, nodes, 0)) {
		check_that(false, "the kernel says where pages are");
		return;
	}
	for (size_t i = 0; i < NR_PAGES; i++)
		nr[nodes[i] >= 0 && nodes[i] < NODES_MAX ? nodes[i]
							 : ELSEWHERE]++;
}

/* ---- policies ---- */

static const struct placed {
	const char *name;
	int policy;
	unsigned long nodes;
	int advice;
	bool of_range; /* and not of the task */
} policies[] = {
	{ "bind to the first", MPOL_BIND, 1, MADV_NOHUGEPAGE, false },
	{ "bind to the second", MPOL_BIND, 2, MADV_NOHUGEPAGE, false },
	{ "interleave", MPOL_INTERLEAVE, 3, MADV_NOHUGEPAGE, false },
	{ "prefer the first", MPOL_PREFERRED, 1, MADV_NOHUGEPAGE, false },
	{ "prefer the second", MPOL_PREFERRED, 2, MADV_NOHUGEPAGE, false },
	{ "bind large pages", MPOL_BIND, 2, MADV_HUGEPAGE, false },
	{ "interleave large pages", MPOL_INTERLEAVE, 3, MADV_HUGEPAGE, false },
	{ "prefer, of the range", MPOL_PREFERRED, 2, MADV_NOHUGEPAGE, true },
	{ "interleave, of the range", MPOL_INTERLEAVE, 3, MADV_NOHUGEPAGE,
	  true },
};

static void map_under_policy(void *arg)
{
	const struct placed *placed = arg;
	char *addr = map_memory(LEN, placed->advice);
	long nr[NODES_MAX + 1], refused;
	int error;

	if (placed->of_range)
		refused = syscall(SYS_mbind, addr, LEN, placed->policy,
				  &placed->nodes, 64, 0);
	else
		refused = syscall(SYS_set_mempolicy, placed->policy,
				  &placed->nodes, 64);
	check_that(!refused, "vfio, %s: it can be set", placed->name);
	error = map_for_device(addr, LEN, 0);
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	tell_fact_number(error, "vfio, %s: errno", placed->name);
	count_nodes(addr, nr);
	for (unsigned nid = 0; nid < nr_nodes() && nid < NODES_MAX; nid++)
		tell_fact_number(nr[nid], "vfio, %s: pages of node %u",
				 placed->name, nid);
	tell_fact_number(nr[ELSEWHERE], "vfio, %s: pages elsewhere",
			 placed->name);
	tell_fact_number(unmap_for_device(LEN, 0), "vfio, %s: unmapped",
			 placed->name);
}

/* Return: pages that are not of the caller's node; -1 if that was moved, or it failed. */
static long map_on_own_node(void)
{
	char *addr = map_memory(LEN, MADV_NOHUGEPAGE);
	unsigned cpu, before, after;
	long nr[NODES_MAX + 1];
	int error;

	syscall(SYS_getcpu, &cpu, &before, NULL);
	error = map_for_device(addr, LEN, 0);
	syscall(SYS_getcpu, &cpu, &after, NULL);
	count_nodes(addr, nr);
	unmap_for_device(LEN, 0);
	munmap(addr, LEN);
	if (error || before != after || before >= NODES_MAX)
		return -1;
	return (long)NR_PAGES - nr[before];
}

/*
 * Whoever works for it.  The caller may be moved in between, and helpers come when
 * they can, so that it may take several tries.  To be moved and moved back is rare.
 */
static void map_without_policy(void)
{
	double until = seconds_now() + HELPER_SECONDS;
	long of_others, before, nr_wrong = 0;
	bool helped;

	do {
		before = helpers_worked();
		of_others = map_on_own_node();
		helped = !helpers_expected() || helpers_worked() > before;
		nr_wrong += of_others > 0;
	} while ((of_others || !helped) && nr_wrong < WRONG_TRIES_MAX &&
		 seconds_now() < until);
	check_that(
		helped && !of_others,
		"without a policy pages for a device are of the caller's node: "
		"%ld of others%s",
		of_others, helped ? "" : ", not helped");
}

void tell_vfio_nodes(void)
{
	if (!open_container()) {
		check_that(false, "there is a device");
		return;
	}
	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++)
		tell_fact_number(
			run_child(map_under_policy, (void *)&policies[i]),
			"vfio, %s: child", policies[i].name);
	map_without_policy();
	tell_vfio_tables();
}
