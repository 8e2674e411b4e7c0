/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The report says of locked memory that all of it was present only where each page was counted:
 * before Linux 6.7 the end of a large range is not.
 */
#include <stdbool.h>
#include <sys/ioctl.h>

#include "ktest.h"

static bool can_scan;
static const void *absent_page;

static int answer_scan(int fd, unsigned long request, void *arg);
static int answer_mincore(void *addr, size_t len, unsigned char *present);

#define ioctl answer_scan
#define mincore answer_mincore
#include "preload/prefault/count_present.c"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define START ((unsigned char *)0x100000000000)

/* What the code asks of the rest of the shim. */
bool shim_tells(void)
{
	return true;
}

void shim_quiet_begin(struct shim_quiet *quiet)
{
}

void shim_quiet_end(const struct shim_quiet *quiet)
{
}

static int answer_scan(int fd, unsigned long request, void *arg)
{
	struct page_scan *scan = arg;
	struct page_scan_region *region =
		(struct page_scan_region *)scan->regions;

	if (!can_scan) {
		errno = ENOTTY;
		return -1;
	}
	region->start = scan->start;
	region->end = scan->end;
	scan->walk_end = scan->end;
	return 1;
}

static int answer_mincore(void *addr, size_t len, unsigned char *present)
{
	for (size_t i = 0; i < len / PAGE; i++)
		present[i] = (unsigned char *)addr + i * PAGE != absent_page;
	return 0;
}

static void each_page_is_counted(void **state)
{
	can_scan = false;
	absent_page = NULL;
	assert_true(shim_all_present(START, 4 * PAGE));
	assert_true(shim_all_present(START + 1, 3 * PAGE));
	absent_page = START + 3 * PAGE;
	assert_false(shim_all_present(START, 4 * PAGE));
	assert_false(shim_all_present(START + 1, 3 * PAGE));
	assert_true(shim_all_present(START, 3 * PAGE));
}

static void what_is_not_counted_may_be_absent(void **state)
{
	can_scan = false;
	absent_page = NULL;
	assert_true(shim_all_present(START, SAMPLED_BYTES));
	assert_false(shim_all_present(START, SAMPLED_BYTES + PAGE));
}

static void the_kernel_counts_all(void **state)
{
	can_scan = true;
	assert_true(shim_all_present(START, SAMPLED_BYTES + PAGE));
}

KTEST_MAIN(KTEST(each_page_is_counted),
	   KTEST(what_is_not_counted_may_be_absent),
	   KTEST(the_kernel_counts_all))
