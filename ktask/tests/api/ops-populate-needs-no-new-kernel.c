/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * populate on a kernel without MADV_POPULATE_*: pages are touched, with the
 * same results and errors.
 */
#include "ktest.h"

#include "pages.h"
#include "refuse.h"

#define LEN (16 * MIB)
#define NO_FILTER 70

static bool refuse_populate(unsigned error)
{
	return refuse_call(SYS_madvise, 2, 22, 23, error);
}

static void check_here(unsigned flags)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	char *at = map_private(LEN);

	ktest_check(ktask_populate(at, LEN, flags) == 0);
	ktest_check(pages_present(at, LEN) == LEN / page_bytes());
	munmap(at + 5 * MIB, page_bytes());
	ktest_check(run_op("populate", at, LEN, flags, &result) == -ENOMEM);
	ktest_check(result.fail_offset == 5 * MIB);
}

static int on_such_a_kernel(void *arg)
{
	unsigned error = *(unsigned *)arg;

	if (!refuse_populate(error))
		return NO_FILTER;
	ktest_check(madvise(NULL, 0, 23) == -1);
	check_here(0);
	check_here(KTASK_POPULATE_READ);
	return 0;
}

static void check_populate(unsigned error)
{
	int status = ktest_in_child(on_such_a_kernel, &error);

	if (status == NO_FILTER << 8)
		ktest_skip("no seccomp filters here");
	assert_int_equal(status, 0);
}

static void where_the_advice_is_unknown(void **state)
{
	check_populate(EINVAL);
}

static void where_the_call_is_missing(void **state)
{
	check_populate(ENOSYS);
}

static void where_a_sandbox_forbids_it(void **state)
{
	check_populate(EPERM);
}

KTEST_MAIN(KTEST(where_the_advice_is_unknown), KTEST(where_the_call_is_missing),
	   KTEST(where_a_sandbox_forbids_it))
