/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask_register() with memory regions of an RDMA device: each region is there, its
 * pages are pinned, and all of it is gone after ktask_unregister(), after an error at
 * any of them, and after a limit was reached in the middle.
 */
#include <errno.h>
#include <ktask/register.h>
#include <string.h>
#include <sys/mman.h>

#include "counts.h"
#include "verbs.h"

#define NR_REGIONS 12
#define MR_BYTES (4 * MIB)
#define LEN (NR_REGIONS * MR_BYTES)

static struct ibv_pd *pd;
static struct ibv_mr *regions[NR_REGIONS];
static struct ktask_verbs verbs;
static struct ktask_register_ctl ctl;
static struct ktask_registration *registration;
static struct ktask_result result;

static int open_device(void **state)
{
	(void)state;
	pd = verbs_open();
	return 0;
}

static int close_device(void **state)
{
	(void)state;
	verbs_close(pd);
	return 0;
}

static void prepare_ctl(char *at)
{
	verbs = (struct ktask_verbs)KTASK_VERBS_INIT;
	verbs.pd = pd;
	verbs.access = VERBS_LOCAL_WRITE;
	verbs.addr = at;
	verbs.mr_bytes = MR_BYTES;
	verbs.mrs = regions;
	verbs.nr_mrs = NR_REGIONS;
	ctl = (struct ktask_register_ctl)KTASK_REGISTER_CTL_INIT;
	ktest_check(ktask_register_verbs(&ctl, &verbs) == 0);
}

static int register_all_by(char *at, unsigned threads)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;

	result = (struct ktask_result)KTASK_RESULT_INIT;
	opts.result = &result;
	opts.max_threads = threads;
	return ktask_register(&registration, at, LEN, &ctl, &opts);
}

static int register_all(char *at)
{
	return register_all_by(at, 2);
}

static bool nothing_is_registered(void)
{
	for (int i = 0; i < NR_REGIONS; i++)
		if (regions[i])
			return false;
	return !registration && verbs_count("mr") == 0 &&
	       counts_of_status(0, "VmPin:") == 0;
}

static void check_regions(char *at)
{
	for (size_t i = 0; i < NR_REGIONS; i++) {
		const struct verbs_region *region = (const void *)regions[i];

		assert_non_null(region);
		assert_ptr_equal(region->addr, at + i * MR_BYTES);
		assert_int_equal(region->length, MR_BYTES);
		assert_true(i == 0 ||
			    region->lkey !=
				    ((const struct verbs_region *)(void *)
					     regions[i - 1])
					    ->lkey);
	}
}

static void each_region_is_pinned_until_it_is_taken_back(void **state)
{
	char *at = map_absent(LEN);
	long before = counts_pinned();

	(void)state;
	prepare_ctl(at);
	assert_int_equal(register_all(at), 0);
	check_regions(at);
	assert_int_equal(verbs_count("mr"), NR_REGIONS);
	assert_int_equal(counts_present(at, LEN), LEN / PAGE);
	assert_int_equal(counts_of_status(0, "VmPin:"), LEN / 1024);
	assert_int_equal(counts_pinned() - before, (long)(LEN / PAGE));
	assert_int_equal(result.chunks, NR_REGIONS);
	assert_int_equal(result.units, LEN);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_true(nothing_is_registered());
	assert_int_equal(counts_pinned(), before);
	munmap(at, LEN);
}

static void present_memory_is_registered_as_it_is(void **state)
{
	char *at = map_absent(LEN);
	uint64_t frame;

	(void)state;
	memset(at, 7, LEN);
	frame = counts_frame(at + LEN / 2);
	prepare_ctl(at);
	assert_int_equal(register_all(at), 0);
	assert_int_equal(verbs_count("mr"), NR_REGIONS);
	assert_true(frame == counts_frame(at + LEN / 2));
	for (size_t pos = 0; pos < LEN; pos += PAGE)
		assert_int_equal(at[pos], 7);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_true(nothing_is_registered());
	munmap(at, LEN);
}

static void a_hole_in_any_region_takes_all_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_REGIONS; i++) {
		char *at = map_absent(LEN);
		size_t hole = i * MR_BYTES + i * 37 * PAGE;

		munmap(at + hole, PAGE);
		prepare_ctl(at);
		assert_int_equal(register_all(at), -ENOMEM);
		assert_int_equal(result.fail_offset, hole);
		assert_true(nothing_is_registered());
		munmap(at, LEN);
	}
}

/* The device's own error: what is only read cannot be written to by it. */
static void a_refusal_of_any_region_takes_all_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_REGIONS; i++) {
		char *at = map_absent(LEN);

		memset(at, 7, LEN);
		mprotect(at + i * MR_BYTES, MR_BYTES, PROT_READ);
		prepare_ctl(at);
		/* So that nobody but the device finds that. */
		ctl.flags |= KTASK_REGISTER_PRESENT;
		assert_int_equal(register_all(at), -EFAULT);
		assert_int_equal(result.fail_offset, i * MR_BYTES);
		assert_true(nothing_is_registered());
		munmap(at, LEN);
	}
}

static int reach_limit(void *arg)
{
	char *at = arg;

	ktest_check(limit_locking(LEN * 5 / 8));
	ktest_check(register_all(at) == -ENOMEM);
	ktest_check(result.fail_offset % MR_BYTES == 0 &&
		    result.fail_offset < LEN);
	ktest_check(counts_of_status(0, "VmPin:") == 0);
	ktest_check(verbs_count("mr") == 0 && !registration);
	/* By one thread: behind the regions that fit. */
	ktest_check(register_all_by(at, 1) == -ENOMEM);
	ktest_check(result.fail_offset == LEN * 5 / 8 / MR_BYTES * MR_BYTES);
	ktest_check(counts_of_status(0, "VmPin:") == 0);
	/* What fits is registered still. */
	ktest_check(ktask_register(&registration, at, LEN / 2, &ctl, NULL) ==
		    0);
	ktest_check(counts_of_status(0, "VmPin:") == LEN / 2 / 1024);
	ktest_check(ktask_unregister(&registration, NULL) == 0);
	ktest_check(counts_of_status(0, "VmPin:") == 0);
	return 0;
}

static int open_and_reach_limit(void *arg)
{
	pd = verbs_open();
	prepare_ctl(arg);
	return reach_limit(arg);
}

static void a_limit_in_the_middle_takes_all_back(void **state)
{
	char *at = map_absent(LEN);

	(void)state;
	assert_int_equal(ktest_in_child(open_and_reach_limit, at), 0);
	assert_true(nothing_is_registered());
	munmap(at, LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(each_region_is_pinned_until_it_is_taken_back),
		KTEST(present_memory_is_registered_as_it_is),
		KTEST(a_hole_in_any_region_takes_all_back),
		KTEST(a_refusal_of_any_region_takes_all_back),
		KTEST(a_limit_in_the_middle_takes_all_back),
	};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
