/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * copy: every byte and none beside, whatever the alignment and the kind of
 * stores; ranges that overlap are refused untouched.
 */
#include "ktest.h"

#include "pages.h"

#define LEN (12 * MIB)

static const unsigned kinds[] = { 0, KTASK_STORE_STREAM, KTASK_STORE_CACHED };

static void scribble(char *at, size_t len, uint64_t seed)
{
	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint64_t value = ktest_random(&seed);

		memcpy(at + i, &value, 8);
	}
}

static void any_alignment(void **state)
{
	uint64_t seed = ktest_seed();
	char *src = map_private(LEN + MIB), *dst = map_private(LEN + MIB);

	scribble(src, LEN + MIB, seed);
	for (int i = 0; i < 30; i++) {
		size_t len = ktest_random_below(&seed, i & 1 ? LEN : 300);
		char *to = dst + 1 + ktest_random_below(&seed, 4096);
		char *from = src + ktest_random_below(&seed, 4096);

		memset(dst, 0x33, LEN + MIB);
		assert_int_equal(ktask_copy(to, from, len, kinds[i % 3]), 0);
		assert_memory_equal(to, from, len);
		assert_int_equal(to[-1], 0x33);
		assert_int_equal(to[len], 0x33);
	}
	munmap(src, LEN + MIB);
	munmap(dst, LEN + MIB);
}

static void large_touched_memory(void **state)
{
	size_t len = 40 * MIB;
	char *src = map_private(len), *dst = map_private(len);

	scribble(src, len, ktest_seed());
	memset(dst, 1, len);
	assert_int_equal(ktask_copy(dst, src, len, 0), 0);
	assert_memory_equal(dst, src, len);
	munmap(src, len);
	munmap(dst, len);
}

static void overlap_is_refused(void **state)
{
	static const size_t shifts[] = { 0, 1, 4096, MIB, LEN / 2 - 1 };
	char *at = map_private(LEN);

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(shifts); i++) {
		assert_int_equal(ktask_copy(at + shifts[i], at, LEN / 2, 0),
				 -EINVAL);
		assert_int_equal(ktask_copy(at, at + shifts[i], LEN / 2, 0),
				 -EINVAL);
	}
	assert_int_equal(pages_present(at, LEN), 0);
	munmap(at, LEN);
}

static void neighbours_do_not_overlap(void **state)
{
	char *at = map_private(LEN);

	scribble(at, LEN / 2, ktest_seed());
	assert_int_equal(ktask_copy(at + LEN / 2, at, LEN / 2, 0), 0);
	assert_memory_equal(at + LEN / 2, at, LEN / 2);
	memset(at, 0, LEN / 2);
	assert_int_equal(ktask_copy(at, at + LEN / 2, LEN / 2, 0), 0);
	assert_memory_equal(at + LEN / 2, at, LEN / 2);
	munmap(at, LEN);
}

KTEST_MAIN(KTEST(any_alignment), KTEST(large_touched_memory),
	   KTEST(overlap_is_refused), KTEST(neighbours_do_not_overlap))
