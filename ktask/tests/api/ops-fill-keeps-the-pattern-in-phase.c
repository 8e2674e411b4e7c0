/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fill: byte i is pattern[i % pattern_len], whatever the length, the
 * alignment, the kind of stores and the chunks; bytes beside are not touched.
 */
#include "ktest.h"

#include "pages.h"

#define LEN (12 * MIB)
#define BESIDE 256

static const unsigned kinds[] = { 0, KTASK_STORE_STREAM, KTASK_STORE_CACHED };

/* What follows a period is what was before it. */
static bool is_repeated(const unsigned char *at, size_t len,
			const unsigned char *pattern, size_t pattern_len)
{
	if (len <= pattern_len)
		return !memcmp(at, pattern, len);
	return !memcmp(at, pattern, pattern_len) &&
	       !memcmp(at + pattern_len, at, len - pattern_len);
}

static void check_pattern(const unsigned char *at, size_t len,
			  const unsigned char *pattern, size_t pattern_len)
{
	size_t phase = 0;

	if (is_repeated(at, len, pattern, pattern_len))
		return;
	for (size_t i = 0; i < len; i++) {
		if (at[i] != pattern[phase])
			fail_msg("byte %zu is %u, not %u", i, at[i],
				 pattern[phase]);
		if (++phase == pattern_len)
			phase = 0;
	}
	fail();
}

static void fill_and_check(unsigned char *at, size_t len,
			   const unsigned char *pattern, size_t pattern_len,
			   unsigned flags)
{
	memset(at - BESIDE, 0xee, BESIDE);
	memset(at + len, 0xee, BESIDE);
	assert_int_equal(ktask_fill(at, len, pattern, pattern_len, flags), 0);
	check_pattern(at, len, pattern, pattern_len);
	check_pattern(at - BESIDE, BESIDE, (const unsigned char *)"\xee", 1);
	check_pattern(at + len, BESIDE, (const unsigned char *)"\xee", 1);
}

static void random_patterns(void **state)
{
	uint64_t seed = ktest_seed();
	unsigned char *all = (void *)map_private(LEN + MIB);
	unsigned char pattern[4096];

	for (int i = 0; i < 24; i++) {
		size_t len = ktest_random_below(&seed, LEN);
		size_t pattern_len = 1 + ktest_random_below(&seed, 4096);
		size_t skew = ktest_random_below(&seed, 4096);

		for (size_t k = 0; k < pattern_len; k++)
			pattern[k] = (unsigned char)ktest_random(&seed);
		fill_and_check(all + BESIDE + skew, len, pattern, pattern_len,
			       kinds[i % 3]);
	}
	munmap(all, LEN + MIB);
}

/* Where vectors, lines and periods begin and end. */
static void small_sizes_and_periods(void **state)
{
	static const size_t periods[] = { 1,  2,  3,  7,  16,	31,  32,
					  63, 64, 65, 67, 4095, 4096 };
	unsigned char *all = (void *)map_private(MIB);
	unsigned char pattern[4096];

	for (size_t k = 0; k < sizeof(pattern); k++)
		pattern[k] = (unsigned char)(k + k / 251);
	for (size_t p = 0; p < KTEST_ARRAY_SIZE(periods); p++)
		for (size_t len = 1; len < 200; len += 1 + len / 70)
			for (size_t skew = 0; skew < 64; skew += 5)
				fill_and_check(all + BESIDE + skew, len,
					       pattern, periods[p],
					       kinds[(len + skew) % 3]);
	munmap(all, MIB);
}

static void zeroes_without_a_pattern(void **state)
{
	unsigned char *all = (void *)map_private(LEN + MIB);

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(kinds); i++) {
		unsigned char *at = all + BESIDE + 3 + i;

		memset(all, 0x55, LEN + MIB);
		assert_int_equal(ktask_fill(at, LEN, NULL, 0, kinds[i]), 0);
		check_pattern(at, LEN, (const unsigned char *)"", 1);
		assert_int_equal(at[-1], 0x55);
		assert_int_equal(at[LEN], 0x55);
	}
	munmap(all, LEN + MIB);
}

/* Large and touched: what the default makes of it. */
static void large_touched_memory(void **state)
{
	size_t len = 40 * MIB;
	unsigned char *at = (void *)map_private(len);

	memset(at, 1, len);
	assert_int_equal(ktask_fill(at, len, "abc", 3, 0), 0);
	check_pattern(at, len, (const unsigned char *)"abc", 3);
	munmap(at, len);
}

static void the_pattern_may_lie_in_the_range(void **state)
{
	unsigned char *at = (void *)map_private(LEN);

	memcpy(at + 3 * MIB, "ktask", 5);
	assert_int_equal(ktask_fill(at, LEN, at + 3 * MIB, 5, 0), 0);
	check_pattern(at, LEN, (const unsigned char *)"ktask", 5);
	munmap(at, LEN);
}

KTEST_MAIN(KTEST(random_patterns), KTEST(small_sizes_and_periods),
	   KTEST(zeroes_without_a_pattern), KTEST(large_touched_memory),
	   KTEST(the_pattern_may_lie_in_the_range))
