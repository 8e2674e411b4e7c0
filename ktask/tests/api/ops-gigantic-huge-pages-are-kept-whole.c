/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * hugetlb pages larger than the usual chunk edge: the page size is found out,
 * also on kernels that tell it in smaps only, so that no page is divided.
 */
#include "ktest.h"

#include "number.h"
#include "pages.h"
#include "refuse.h"

#include <sys/ioctl.h>

#define POOL "/sys/kernel/mm/hugepages/hugepages-1048576kB/"
#define GIB ((size_t)1 << 30)
#define MAP_OF_1_GIB (30 << 26) /* MAP_HUGE_1GB */
#define NR 2
#define NO_FILTER 70

static const char *why_not;

static long free_pages(void)
{
	return number_read(POOL "free_hugepages");
}

static int make_pool(void **state)
{
	long nr = number_read(POOL "nr_hugepages");

	if (nr)
		why_not = nr < 0 ? "no pages of 1 GiB on this machine"
				 : "the pool of 1 GiB pages is in use";
	else if (sysconf(_SC_AVPHYS_PAGES) * (long)page_bytes() <
		 (long)(2 * NR * GIB))
		why_not = "too little free memory for pages of 1 GiB";
	else if (!number_write(POOL "nr_hugepages", NR))
		why_not = "setting the hugetlb pool needs root";
	else if (number_read(POOL "nr_hugepages") != NR) {
		why_not = "memory is too fragmented for pages of 1 GiB";
		number_write(POOL "nr_hugepages", 0);
	}
	return 0;
}

static int restore_pool(void **state)
{
	if (!why_not)
		number_write(POOL "nr_hugepages", 0);
	return 0;
}

static int populate_and_discard(void *arg)
{
	bool by_smaps = arg;
	unsigned query = (unsigned)_IOC(_IOC_READ | _IOC_WRITE, 'f', 17, 104);
	char *at;

	if (by_smaps && !refuse_call(SYS_ioctl, 1, query, query, ENOTTY))
		return NO_FILTER;
	at = mmap(NULL, NR * GIB, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_OF_1_GIB, -1,
		  0);
	ktest_check(at != MAP_FAILED);
	ktest_check(ktask_populate(at, NR * GIB, 0) == 0);
	ktest_check(free_pages() == 0);
	ktest_check(ktask_discard(at, NR * GIB, 0) == 0);
	ktest_check(free_pages() == NR);
	ktest_check(munmap(at, NR * GIB) == 0);
	return 0;
}

static void check_child(bool by_smaps)
{
	int status;

	if (why_not)
		ktest_skip("%s", why_not);
	status =
		ktest_in_child(populate_and_discard, by_smaps ? "smaps" : NULL);
	if (status == NO_FILTER << 8)
		ktest_skip("no seccomp filters here");
	assert_int_equal(status, 0);
}

static void where_the_kernel_is_asked(void **state)
{
	check_child(false);
}

static void where_smaps_is_read(void **state)
{
	check_child(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(where_the_kernel_is_asked),
		KTEST(where_smaps_is_read),
	};

	return cmocka_run_group_tests(tests, make_pool, restore_pool);
}
