/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * populate: an error comes with the first byte that failed, whichever way the
 * pages are made and wherever it lies; pages below stay; the process lives.
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

/* Offsets at, beside and far from the edges of chunks. */
static const size_t indices[] = { 0,	1,    100,  511,  512, 513,
				  1553, 3071, 3072, 4000, 4095 };

static void check_failure(char *at, size_t page_nr, unsigned flags, int error)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	size_t offset = page_nr * page_bytes();

	assert_int_equal(run_op("populate", at, LEN, flags, &result), error);
	assert_int_equal(result.error, error);
	assert_int_equal(result.fail_error, error);
	assert_int_equal(result.fail_offset, offset);
	assert_ptr_equal(result.fail_pos, at + offset);
	assert_int_equal(result.units % page_bytes(), 0);
	assert_true(result.units < LEN);
}

static void a_hole(void **state)
{
	size_t page = page_bytes();

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(indices); i++)
		for (unsigned way = 0; way < KTEST_ARRAY_SIZE(ways); way++) {
			char *at = map_private(LEN);

			munmap(at + indices[i] * page, page);
			check_failure(at, indices[i], ways[way], -ENOMEM);
			munmap(at, LEN);
		}
}

static void a_file_cut_short(void **state)
{
	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(indices); i++)
		for (unsigned way = 0; way < KTEST_ARRAY_SIZE(ways); way++) {
			int fd = memory_file(LEN);
			char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
					MAP_SHARED, fd, 0);

			assert_int_equal(ftruncate(fd, (off_t)(indices[i] *
							       page_bytes())),
					 0);
			check_failure(at, indices[i], ways[way], -EFAULT);
			munmap(at, LEN);
			close(fd);
		}
}

static void no_permission(void **state)
{
	size_t page = page_bytes();

	for (unsigned i = 0; i < KTEST_ARRAY_SIZE(indices); i++)
		for (unsigned way = 0; way < KTEST_ARRAY_SIZE(ways); way++) {
			bool reads = ways[way] & KTASK_POPULATE_READ;
			char *at = map_private(LEN);

			mprotect(at + indices[i] * page, page,
				 reads ? PROT_NONE : PROT_READ);
			check_failure(at, indices[i], ways[way], -EFAULT);
			munmap(at, LEN);
		}
}

/* One thread works upwards: everything below the failure is there. */
static void pages_below_stay(void **state)
{
	for (unsigned way = 0; way < KTEST_ARRAY_SIZE(ways); way++) {
		char *at = map_private(LEN);
		struct ktask_op_args args = { .struct_size = sizeof(args),
					      .addr = at,
					      .len = LEN,
					      .flags = ways[way] };
		struct ktask_opts opts = KTASK_OPTS_INIT;
		size_t hole = 3000 * page_bytes();

		opts.max_threads = 1;
		munmap(at + hole, page_bytes());
		assert_int_equal(
			ktask_op_run(ktask_op_find("populate"), &args, &opts),
			-ENOMEM);
		assert_int_equal(pages_present(at, hole), 3000);
		munmap(at, LEN);
	}
}

/* An outer job is not told about places that are not its own. */
static int populate_inside(void *start, void *end, void *arg)
{
	assert_int_equal(ktask_populate(arg, LEN, 0), -ENOMEM);
	return -EIO;
}

static void an_outer_job_keeps_its_own(void **state)
{
	char *at = map_private(LEN);
	struct ktask_result result = KTASK_RESULT_INIT;
	DEFINE_KTASK_CTL(ctl, populate_inside, at, 10);

	munmap(at, page_bytes());
	ktask_ctl_set_max_threads(&ctl, 1);
	ktask_ctl_set_result(&ctl, &result);
	assert_int_equal(ktask_run((void *)1000, 10, &ctl), -EIO);
	assert_ptr_equal(result.fail_pos, (void *)1000);
	munmap(at, LEN);
}

KTEST_MAIN(KTEST(a_hole), KTEST(a_file_cut_short), KTEST(no_permission),
	   KTEST(pages_below_stay), KTEST(an_outer_job_keeps_its_own))
