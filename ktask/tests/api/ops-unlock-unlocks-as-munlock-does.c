/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * unlock: locked memory is unlocked and its contents stay; a hole is the plain
 * call's error, and what lies before it is unlocked.
 */
#include "ktest.h"

#include "pages.h"

/* As much as everybody may lock. */
#define LEN (4 * MIB)

static size_t locked_before;

static char *map_locked(void)
{
	char *at = map_private(LEN);

	memset(at, 'x', LEN);
	locked_before = status_bytes("VmLck");
	if (ktask_lock(at, LEN, 0))
		ktest_skip("locking is not permitted");
	assert_int_equal(status_bytes("VmLck"), locked_before + LEN);
	return at;
}

static void memory_is_unlocked_and_stays(void **state)
{
	char *at = map_locked();

	assert_int_equal(ktask_unlock(at, LEN), 0);
	assert_int_equal(status_bytes("VmLck"), locked_before);
	assert_int_equal(pages_present(at, LEN), LEN / page_bytes());
	assert_int_equal(at[0], 'x');
	assert_memory_equal(at, at + 1, LEN - 1);
	/* As munlock(): nothing need be locked. */
	assert_int_equal(ktask_unlock(at, LEN), 0);
	munmap(at, LEN);
}

static void only_the_range_is_unlocked(void **state)
{
	char *at = map_locked();

	assert_int_equal(ktask_unlock(at + MIB, LEN - 2 * MIB), 0);
	assert_int_equal(status_bytes("VmLck"), locked_before + 2 * MIB);
	munmap(at, LEN);
}

static void holes_are_named(void **state)
{
	static const size_t holes[] = { 0, MIB + 4096, LEN - 4096 };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(holes); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		char *at = map_locked();

		munmap(at + holes[i], page_bytes());
		assert_int_equal(run_op("unlock", at, LEN, 0, &result),
				 -ENOMEM);
		assert_int_equal(result.fail_offset, holes[i]);
		assert_int_equal(status_bytes("VmLck"),
				 locked_before +
					 (holes[i] ? LEN - holes[i] : LEN) -
					 page_bytes());
		munmap(at, LEN);
	}
}

KTEST_MAIN(KTEST(memory_is_unlocked_and_stays),
	   KTEST(only_the_range_is_unlocked), KTEST(holes_are_named))
