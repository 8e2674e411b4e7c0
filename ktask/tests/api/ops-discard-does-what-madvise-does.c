/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * discard: the pages are gone and read as zero; holes, locked memory and
 * memory that the advice is not for give the plain call's error, at the first
 * byte that it is about.
 */
#include "ktest.h"

#include "pages.h"

#define LEN (128 * MIB)

static char *map_filled(size_t len)
{
	char *at = map_private(len);

	assert_int_equal(ktask_fill(at, len, "x", 1, 0), 0);
	return at;
}

static void pages_are_freed_and_read_as_zero(void **state)
{
	char *at = map_filled(LEN);

	assert_int_equal(ktask_discard(at + MIB, LEN - 2 * MIB, 0), 0);
	assert_int_equal(pages_present(at, LEN), 2 * MIB / page_bytes());
	assert_int_equal(at[MIB], 0);
	assert_int_equal(at[LEN - MIB - 1], 0);
	assert_int_equal(at[MIB - 1], 'x');
	assert_int_equal(at[LEN - MIB], 'x');
	munmap(at, LEN);
}

static void huge_pages_are_freed(void **state)
{
	char *at = map_private(LEN);

	madvise(at, LEN, MADV_HUGEPAGE);
	assert_int_equal(ktask_fill(at, LEN, "x", 1, 0), 0);
	assert_int_equal(ktask_discard(at, LEN, 0), 0);
	assert_int_equal(pages_present(at, LEN), 0);
	munmap(at, LEN);
}

static void files_are_read_again(void **state)
{
	int fd = memory_file(LEN);
	char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	at[70 * MIB] = 'y';
	assert_int_equal(pwrite(fd, "z", 1, 70 * MIB), 1);
	assert_int_equal(at[70 * MIB], 'y');
	assert_int_equal(ktask_discard(at, LEN, 0), 0);
	assert_int_equal(at[70 * MIB], 'z');
	munmap(at, LEN);
	close(fd);
}

static void free_is_for_private_memory(void **state)
{
	char *mine = map_filled(LEN);
	char *ours = map_anon(LEN, PROT_READ | PROT_WRITE, MAP_SHARED);
	struct ktask_result result = KTASK_RESULT_INIT;

	assert_int_equal(ktask_discard(mine, LEN, KTASK_DISCARD_FREE), 0);
	/* Kept until memory is short; all or nothing, page by page. */
	for (size_t i = 0; i < LEN; i += page_bytes())
		assert_true(mine[i] == 'x' || mine[i] == 0);
	assert_int_equal(madvise(ours, LEN, MADV_FREE), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(
		run_op("discard", ours, LEN, KTASK_DISCARD_FREE, &result),
		-EINVAL);
	assert_int_equal(result.fail_offset, 0);
	munmap(mine, LEN);
	munmap(ours, LEN);
}

/* madvise() does the rest and reports the hole in the end. */
static void holes_are_reported_after_the_rest(void **state)
{
	static const size_t holes[] = { 0, 5 * MIB + 4096, 64 * MIB,
					LEN - 4096 };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(holes); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		char *at = map_filled(LEN);

		munmap(at + holes[i], page_bytes());
		assert_int_equal(run_op("discard", at, LEN, 0, &result),
				 -ENOMEM);
		assert_int_equal(result.error, -ENOMEM);
		assert_int_equal(result.fail_offset, holes[i]);
		assert_ptr_equal(result.fail_pos, at + holes[i]);
		assert_int_equal(pages_present(at, LEN), 0);
		munmap(at, LEN);
	}
}

static void locked_memory_is_refused(void **state)
{
	static const size_t positions[] = { 0, 3 * MIB + 4096, 96 * MIB };

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(positions); i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		char *at = map_filled(LEN);

		/* Past the sanitizers, which make mlock() do nothing. */
		if (ktask_lock(at + positions[i], page_bytes(), 0))
			ktest_skip("locking a page is not permitted");
		assert_int_equal(
			madvise(at + positions[i], page_bytes(), MADV_DONTNEED),
			-1);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(run_op("discard", at, LEN, 0, &result),
				 -EINVAL);
		assert_int_equal(result.fail_offset, positions[i]);
		assert_int_equal(at[positions[i]], 'x');
		assert_int_equal(pages_present(at, positions[i]), 0);
		munmap(at, LEN);
	}
}

KTEST_MAIN(KTEST(pages_are_freed_and_read_as_zero), KTEST(huge_pages_are_freed),
	   KTEST(files_are_read_again), KTEST(free_is_for_private_memory),
	   KTEST(holes_are_reported_after_the_rest),
	   KTEST(locked_memory_is_refused))
