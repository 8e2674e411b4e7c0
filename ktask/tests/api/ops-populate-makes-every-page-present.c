/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * populate: every page of any kind of mapping, nothing beyond, contents kept.
 */
#include "ktest.h"

#include "pages.h"

#define LEN (16 * MIB)

static const unsigned ways[] = {
	0,
	KTASK_POPULATE_READ,
	KTASK_POPULATE_TOUCH,
	KTASK_POPULATE_TOUCH | KTASK_POPULATE_READ,
};

static void check_populate(char *at, size_t len, unsigned flags)
{
	struct ktask_result result = KTASK_RESULT_INIT;

	assert_int_equal(run_op("populate", at, len, flags, &result), 0);
	assert_int_equal(pages_present(at, len), len / page_bytes());
	assert_int_equal(result.units, len);
	assert_int_equal(result.error, 0);
	assert_null(result.fail_pos);
}

static void private_memory(void **state)
{
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(ways); i++) {
		char *at = map_private(LEN);

		check_populate(at, LEN, ways[i]);
		munmap(at, LEN);
	}
}

static void shared_memory(void **state)
{
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(ways); i++) {
		char *at = map_anon(LEN, PROT_READ | PROT_WRITE, MAP_SHARED);

		check_populate(at, LEN, ways[i]);
		munmap(at, LEN);
	}
}

static void huge_pages(void **state)
{
	char *at = map_private(LEN);

	madvise(at, LEN, MADV_HUGEPAGE);
	check_populate(at, LEN, 0);
	munmap(at, LEN);
}

static void mapped_files(void **state)
{
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(ways); i++) {
		int fd = memory_file(LEN);
		char *at;

		assert_int_equal(pwrite(fd, "mark", 4, 5 * MIB), 4);
		at = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			  i & 1 ? MAP_PRIVATE : MAP_SHARED, fd, 0);
		assert_ptr_not_equal(at, MAP_FAILED);
		check_populate(at, LEN, ways[i]);
		assert_memory_equal(at + 5 * MIB, "mark", 4);
		munmap(at, LEN);
		close(fd);
	}
}

static void read_only_memory_for_reading(void **state)
{
	char *at = map_anon(LEN, PROT_READ, MAP_SHARED);

	check_populate(at, LEN, KTASK_POPULATE_READ);
	munmap(at, LEN);
}

/* Beginnings and ends that fall on no huge page. */
static void unaligned_ranges_and_no_more(void **state)
{
	uint64_t seed = ktest_seed();
	size_t page = page_bytes(), pages = LEN / page;

	for (int i = 0; i < 40; i++) {
		char *at = map_private(LEN);
		size_t from = ktest_random_below(&seed, pages);
		size_t nr = 1 + ktest_random_below(&seed, pages - from);
		unsigned flags = ways[ktest_random_below(&seed, 4)];

		assert_int_equal(
			ktask_populate(at + from * page, nr * page, flags), 0);
		assert_int_equal(pages_present(at, LEN), nr);
		assert_int_equal(pages_present(at + from * page, nr * page),
				 nr);
		munmap(at, LEN);
	}
}

static void the_length_is_rounded_up(void **state)
{
	char *at = map_private(LEN);

	assert_int_equal(ktask_populate(at, page_bytes() + 1, 0), 0);
	assert_int_equal(pages_present(at, LEN), 2);
	munmap(at, LEN);
}

/* For writing: private pages of a file are copies from then on. */
static void by_default_as_if_written(void **state)
{
	for (unsigned touch = 0; touch < 2; touch++) {
		unsigned flags = touch ? KTASK_POPULATE_TOUCH : 0;
		int fd = memory_file(LEN);
		char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE,
				fd, 0);

		assert_int_equal(ktask_populate(at, LEN, flags), 0);
		assert_int_equal(pwrite(fd, "late", 4, 7 * MIB), 4);
		assert_memory_equal(at + 7 * MIB, "\0\0\0\0", 4);
		munmap(at, LEN);

		at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
			  0);
		flags |= KTASK_POPULATE_READ;
		assert_int_equal(ktask_populate(at, LEN, flags), 0);
		assert_int_equal(pwrite(fd, "more", 4, 7 * MIB), 4);
		assert_memory_equal(at + 7 * MIB, "more", 4);
		munmap(at, LEN);
		close(fd);
	}
}

KTEST_MAIN(KTEST(private_memory), KTEST(shared_memory), KTEST(huge_pages),
	   KTEST(mapped_files), KTEST(read_only_memory_for_reading),
	   KTEST(unaligned_ranges_and_no_more), KTEST(the_length_is_rounded_up),
	   KTEST(by_default_as_if_written))
