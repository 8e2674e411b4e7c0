/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * populate and lock in a memory cgroup that is too small and whose OOM killer
 * is off: -ENOMEM (lock: mlock's error) and a position; the process lives.
 */
#include "ktest.h"

#include "memory_group.h"
#include "pages.h"

#define LEN (64 * MIB)
#define LIMIT "25165824" /* 24 MiB */

/* Allocates nothing and was written before: there is no memory to be had. */
static unsigned char there[LEN / 4096];

static size_t count_present(char *at, size_t len)
{
	size_t nr = len / page_bytes(), present = 0;

	ktest_check(!mincore(at, len, there));
	for (size_t i = 0; i < nr; i++)
		present += there[i] & 1;
	return present;
}

/*
 * With the killer off, whoever faults at the limit sleeps for ever: also a
 * helper on a new page of its stack, or anybody in code that has not run yet.
 * So all that will run runs once before, fails once, and is locked.
 */
static void make_all_present(const char *name)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	volatile char stack[128 * 1024];
	char *at = map_private(LEN);

	for (size_t i = 0; i < sizeof(stack); i += 4096)
		stack[i] = 1;
	for (int i = 0; i < 3; i++)
		ktest_check(run_op(name, at, LEN, 0, &result) == 0);
	munmap(at + LEN / 2, LEN / 2);
	ktest_check(run_op(name, at, LEN, 0, &result) != 0);
	munmap(at, LEN / 2);
	ktest_check(!mlockall(MCL_CURRENT));
}

static int within_the_limit(void *arg)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	const char *name = arg;
	char *at;
	int error;

	memset(there, 1, sizeof(there));
	make_all_present(name);
	at = map_private(LEN);
	if (!memory_group_enter(LIMIT))
		return NO_MEMORY_GROUP;
	error = run_op(name, at, LEN, 0, &result);
	ktest_check(error == (strcmp(name, "lock") ? -ENOMEM : -EAGAIN));
	ktest_check(result.error == error);
	ktest_check(result.fail_offset % page_bytes() == 0);
	ktest_check(result.fail_offset < LEN);
	ktest_check(count_present(at + result.fail_offset, page_bytes()) == 0);
	/* Most of the limit was used, and giving it back is possible. */
	ktest_check(count_present(at, LEN) * page_bytes() > 8 * MIB);
	munmap(at, LEN);
	at = map_private(LEN);
	ktest_check(ktask_populate(at, 4 * MIB, 0) == 0);
	return 0;
}

static void populating_ends_with_it(void **state)
{
	memory_group_test(within_the_limit, "populate");
}

static void locking_ends_with_it(void **state)
{
	memory_group_test(within_the_limit, "lock");
}

KTEST_MAIN(KTEST(populating_ends_with_it), KTEST(locking_ends_with_it))
