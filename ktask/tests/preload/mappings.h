/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * print_mappings(): the mappings that begin in a range, with the kernel's
 * account of them, so that two runs can be compared.
 */
#ifndef KTEST_PRELOAD_MAPPINGS_H
#define KTEST_PRELOAD_MAPPINGS_H

#include <stdbool.h>

#include "probe.h"

#define NR_COUNTS 9

/* Fields that the kernel decides by what was called, not by when. */
static const char *const counts[NR_COUNTS] = {
	"Rss:",		  "Shared_Clean:",    "Shared_Dirty:",
	"Private_Clean:", "Private_Dirty:",   "Anonymous:",
	"Locked:",	  "Private_Hugetlb:", "Shared_Hugetlb:",
};

struct mapping {
	uintptr_t start, end, offset;
	unsigned long inode;
	char perms[8];
	char flags[512];
	unsigned long count[NR_COUNTS];
};

/* Addresses are told from @base on. */
static void print_mapping(const struct mapping *mapping, uintptr_t base)
{
	if (!mapping->end)
		return;
	printf("  %lx-%lx %s\n", mapping->start - base, mapping->end - base,
	       mapping->perms);
	for (int i = 0; i < NR_COUNTS; i++)
		if (mapping->count[i])
			printf("   %s %lu\n", counts[i], mapping->count[i]);
	printf(" %s", mapping->flags);
}

/*
 * Mappings of a segment that are alike are joined by the kernel or not, by the
 * order in which parts of them were locked: it removes none whose file wants to
 * be told of that.  The shim locks in another order, so they count as one.
 */
static bool continues_mapping(const struct mapping *mapping,
			      const struct mapping *last)
{
	return mapping->inode && mapping->perms[3] == 's' &&
	       mapping->start == last->end && mapping->inode == last->inode &&
	       mapping->offset == last->offset + (last->end - last->start) &&
	       !strcmp(mapping->perms, last->perms) &&
	       !strcmp(mapping->flags, last->flags);
}

static void take_mapping(const struct mapping *mapping, struct mapping *last,
			 uintptr_t base)
{
	if (continues_mapping(mapping, last)) {
		last->end = mapping->end;
		for (int i = 0; i < NR_COUNTS; i++)
			last->count[i] += mapping->count[i];
		return;
	}
	print_mapping(last, base);
	*last = *mapping;
}

static void take_count(struct mapping *mapping, const char *line)
{
	for (int i = 0; i < NR_COUNTS; i++)
		if (!strncmp(line, counts[i], strlen(counts[i])))
			mapping->count[i] = account_value(line);
}

static void print_mappings(const char *base, size_t bytes)
{
	uintptr_t from = (uintptr_t)base;
	struct mapping last = { 0 }, now = { 0 };
	FILE *maps = fopen("/proc/self/smaps", "r");
	char line[512];

	must_hold(maps != NULL, "smaps");
	while (fgets(line, sizeof(line), maps)) {
		struct mapping next = { 0 };

		if (sscanf(line, "%lx-%lx %7s %lx %*s %lu", &next.start,
			   &next.end, next.perms, &next.offset,
			   &next.inode) == 5) {
			now = next;
		} else if (!strncmp(line, "VmFlags:", 8)) {
			strcpy(now.flags, line);
			if (now.start >= from && now.start - from < bytes)
				take_mapping(&now, &last, from);
		} else {
			take_count(&now, line);
		}
	}
	print_mapping(&last, from);
	fclose(maps);
}

#endif
