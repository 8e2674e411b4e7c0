/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * hugetlb mappings: populated, discarded and locked in whole pages; when the
 * pool is exhausted the first page that was not to be had is named.
 */
#include "ktest.h"

#include <errno.h>

#include "number.h"
#include "pages.h"

#define POOL "/proc/sys/vm/nr_hugepages"
#define HUGE (2 * MIB)
#define NR_HUGE 40
#define NR_MAPPED 48

static long old_pool = -1;

static bool default_is_2_mib(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Hugepagesize: %lu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024 == HUGE;
}

static const char *why_not;

static int make_pool(void **state)
{
	old_pool = number_read(POOL);
	if (old_pool != 0)
		why_not = old_pool < 0 ? "no hugetlb pages in this kernel"
				       : "the hugetlb pool is in use";
	else if (!default_is_2_mib())
		why_not = "hugetlb pages are not 2 MiB here";
	else if (!number_write(POOL, NR_HUGE))
		why_not = "setting the hugetlb pool needs root";
	else if (number_read(POOL) != NR_HUGE)
		why_not = "memory is too fragmented for hugetlb pages";
	return 0;
}

static int restore_pool(void **state)
{
	if (old_pool == 0)
		number_write(POOL, 0);
	return 0;
}

#define need_pool()                                \
	do {                                       \
		if (why_not)                       \
			ktest_skip("%s", why_not); \
	} while (0)

static char *map_huge(size_t nr, int flags)
{
	char *at = mmap(NULL, nr * HUGE, PROT_READ | PROT_WRITE,
			MAP_ANONYMOUS | MAP_HUGETLB | flags, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static long free_pages(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	long nr = -1;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "HugePages_Free: %ld", &nr) == 1)
			break;
	if (file)
		fclose(file);
	return nr;
}

static void pages_are_populated_and_discarded(void **state)
{
	need_pool();
	for (unsigned flags = 0; flags <= KTASK_POPULATE_TOUCH; flags += 2) {
		char *at = map_huge(NR_HUGE, MAP_PRIVATE);

		assert_int_equal(ktask_populate(at, NR_HUGE * HUGE, flags), 0);
		assert_int_equal(free_pages(), 0);
		assert_int_equal(ktask_discard(at, NR_HUGE * HUGE, 0), 0);
		assert_int_equal(free_pages(), NR_HUGE);
		munmap(at, NR_HUGE * HUGE);
	}
}

static void exhausted_it_names_the_page(void **state)
{
	need_pool();
	for (unsigned flags = 0; flags <= KTASK_POPULATE_TOUCH; flags += 2) {
		struct ktask_result result = KTASK_RESULT_INIT;
		char *at = map_huge(NR_MAPPED, MAP_PRIVATE | MAP_NORESERVE);
		int error = run_op("populate", at, NR_MAPPED * HUGE, flags,
				   &result);

		assert_int_equal(error, -EFAULT);
		/* Threads take pages in no order: each is at its own place. */
		assert_int_equal(result.fail_offset % HUGE, 0);
		assert_true(result.fail_offset < NR_MAPPED * HUGE);
		assert_int_equal(free_pages(), 0);
		munmap(at, NR_MAPPED * HUGE);
		assert_int_equal(free_pages(), NR_HUGE);
	}
}

static void alone_it_gets_as_far_as_there_are_pages(void **state)
{
	need_pool();
	for (unsigned flags = 0; flags <= KTASK_POPULATE_TOUCH; flags += 2) {
		struct ktask_result result = KTASK_RESULT_INIT;
		char *at = map_huge(NR_MAPPED, MAP_PRIVATE | MAP_NORESERVE);
		struct ktask_op_args args = { .struct_size = sizeof(args),
					      .addr = at,
					      .len = NR_MAPPED * HUGE,
					      .flags = flags };
		struct ktask_opts opts = KTASK_OPTS_INIT;

		opts.max_threads = 1;
		opts.result = &result;
		assert_int_equal(
			ktask_op_run(ktask_op_find("populate"), &args, &opts),
			-EFAULT);
		assert_int_equal(result.fail_offset, NR_HUGE * HUGE);
		munmap(at, NR_MAPPED * HUGE);
	}
}

/* As madvise(2): a page is discarded from its beginning or not at all. */
static void parts_of_pages_are_not_discarded(void **state)
{
	char *at;

	need_pool();
	at = map_huge(NR_HUGE, MAP_PRIVATE);
	assert_int_equal(ktask_populate(at, NR_HUGE * HUGE, 0), 0);
	assert_int_equal(ktask_discard(at + page_bytes(), 70 * MIB, 0),
			 -EINVAL);
	assert_int_equal(free_pages(), 0);
	assert_int_equal(ktask_discard(at, 70 * MIB + page_bytes(), 0), 0);
	assert_int_equal(free_pages(), 35);
	munmap(at, NR_HUGE * HUGE);
}

/* Where parts of pages would be -EINVAL, the hole is still found. */
static void a_hole_among_them_is_found(void **state)
{
	need_pool();
	for (size_t hole = 0; hole < NR_HUGE; hole += 13) {
		struct ktask_result result = KTASK_RESULT_INIT;
		char *at = map_huge(NR_HUGE, MAP_PRIVATE);

		assert_int_equal(ktask_populate(at, NR_HUGE * HUGE, 0), 0);
		munmap(at + hole * HUGE, HUGE);
		assert_int_equal(
			run_op("discard", at, NR_HUGE * HUGE, 0, &result),
			-ENOMEM);
		assert_int_equal(result.fail_offset, hole * HUGE);
		assert_int_equal(free_pages(), NR_HUGE);
		munmap(at, NR_HUGE * HUGE);
	}
}

static void they_are_filled_and_locked(void **state)
{
	char *at;

	need_pool();
	at = map_huge(NR_HUGE, MAP_SHARED);
	assert_int_equal(ktask_fill(at, NR_HUGE * HUGE, "hu", 2, 0), 0);
	assert_int_equal(at[NR_HUGE * HUGE - 1], 'u');
	if (ktask_lock(at, NR_HUGE * HUGE, 0))
		assert_true(geteuid() != 0);
	munmap(at, NR_HUGE * HUGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(pages_are_populated_and_discarded),
		KTEST(exhausted_it_names_the_page),
		KTEST(alone_it_gets_as_far_as_there_are_pages),
		KTEST(parts_of_pages_are_not_discarded),
		KTEST(a_hole_among_them_is_found),
		KTEST(they_are_filled_and_locked),
	};

	return cmocka_run_group_tests(tests, make_pool, restore_pool);
}
