/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How much of a range is present, for the report: programs give back address
 * space of which they have touched little.
 *
 * Called only if there will be a report.  Since Linux 6.7 the kernel counts present pages
 * itself (PAGEMAP_SCAN).  Before that mincore() tells, which also counts pages of a file
 * that other processes have read.  It needs a byte for each page, so only the first
 * SAMPLED_BYTES of a range are counted.  The rest counts as present, but at most as many
 * bytes as the process has resident.
 *
 * No handler of the program runs meanwhile: one that left by siglongjmp() would leave a
 * descriptor open, and the thread could no longer be cancelled.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/shim.h"
#include "util/file.h"
#include "util/page_scan.h"
#include "util/scoped.h"

/* A caller may have little stack. */
#define NR_PAGES 1024
#define NR_REGIONS 32
#define SAMPLED_BYTES ((size_t)8 << 30)

/* Return: false where the kernel cannot say. */
static bool scan_present(uintptr_t start, uintptr_t end, size_t *bytes)
{
	struct page_scan_region regions[NR_REGIONS];
	struct page_scan scan =
		page_scan_present(start, end, regions, NR_REGIONS);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), nr = -1;

	*bytes = 0;
	while (fd >= 0 && scan.start < end &&
	       (nr = ioctl(fd, PAGE_SCAN_IOCTL, &scan)) >= 0) {
		for (int i = 0; i < nr; i++)
			*bytes += regions[i].end - regions[i].start;
		scan.start = scan.walk_end;
	}
	if (fd >= 0)
		close(fd);
	return nr >= 0;
}

static size_t process_bytes(void)
{
	uint64_t kib;

	return file_value("/proc/self/status", "VmRSS", &kib) ? kib * 1024
							      : SIZE_MAX;
}

static size_t count_present(uintptr_t start, uintptr_t end)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), nr_present = 0;
	unsigned char present[NR_PAGES];

	while (start < end) {
		size_t len = end - start;

		if (len > sizeof(present) * page)
			len = sizeof(present) * page;
		if (!mincore((void *)start, len, present))
			for (size_t i = 0; i < (len + page - 1) / page; i++)
				nr_present += present[i] & 1;
		start += len;
	}
	return nr_present * page;
}

/* @counted: set to the bytes at its beginning that were */
static size_t count_bytes(uintptr_t start, uintptr_t end, size_t *counted)
{
	size_t bytes;

	*counted = end - start;
	if (scan_present(start, end, &bytes))
		return bytes;
	if (*counted > SAMPLED_BYTES)
		*counted = SAMPLED_BYTES;
	return count_present(start, start + *counted);
}

size_t shim_present_bytes(const void *addr, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr, end = start + len;
	size_t bytes, counted, rest;
	keep_errno();

	end = (end + page - 1) & ~(page - 1);
	if (!shim_tells() || start & (page - 1) || end < start)
		return len;
	shim_stay_quiet();
	bytes = count_bytes(start, end, &counted);
	rest = counted < end - start ? process_bytes() : 0;
	return bytes + rest < len ? bytes + rest : len;
}

bool shim_all_present(const void *addr, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page - 1);
	uintptr_t end = ((uintptr_t)addr + len + page - 1) & ~(page - 1);
	size_t counted;
	keep_errno();

	if (!shim_tells() || end < start)
		return false;
	shim_stay_quiet();
	return count_bytes(start, end, &counted) == end - start;
}
