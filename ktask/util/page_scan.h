/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which pages a process has in its page table, by PAGEMAP_SCAN of /proc/PID/pagemap: since
 * Linux 6.7, whose <linux/fs.h> has these names.
 */
#ifndef KTASK_UTIL_PAGE_SCAN_H
#define KTASK_UTIL_PAGE_SCAN_H

#include <stdint.h>
#include <sys/ioctl.h>

struct page_scan_region {
	uint64_t start, end, categories;
};

struct page_scan {
	uint64_t size, flags, start, end, walk_end, regions, nr_regions,
		max_pages, inverted, all_of, any_of, returned;
};

#define PAGE_SCAN_PRESENT (1u << 3)
#define PAGE_SCAN_IOCTL _IOWR('f', 16, struct page_scan)

/*
 * page_scan_present - ask for the present parts of [@start, @end)
 *
 * PAGE_SCAN_IOCTL returns how many of @regions it has set, or an error.  Go on from
 * walk_end.
 */
static inline struct page_scan
page_scan_present(uintptr_t start, uintptr_t end,
		  struct page_scan_region *regions, unsigned nr_regions)
{
	return (struct page_scan){
		.size = sizeof(struct page_scan),
		.start = start,
		.end = end,
		.regions = (uintptr_t)regions,
		.nr_regions = nr_regions,
		.all_of = PAGE_SCAN_PRESENT,
		.returned = PAGE_SCAN_PRESENT,
	};
}

#endif /* KTASK_UTIL_PAGE_SCAN_H */
