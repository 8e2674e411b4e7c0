/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask_register() with iommufd, several pieces at once, and the kernel's mock device:
 * it reaches the right page behind each address, and none after ktask_unregister(),
 * after an error in any piece, and after a limit that was reached in the middle.  A
 * process may fork and be killed.
 */
#include <ktask/register.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counts.h"
#include "iommufd_mock.h"

#define UNIT MIB
#define NR_UNITS 16
#define LEN (NR_UNITS * UNIT)
#define IOVA (2 * MOCK_FIRST_IOVA)

static struct mock_device device;
static struct ktask_iommu iommu;
static struct ktask_register_ctl ctl;
static struct ktask_registration *registration;
static struct ktask_result result;

static void prepare_ctl(char *at)
{
	iommu = (struct ktask_iommu)KTASK_IOMMU_INIT;
	iommu.fd = device.fd;
	iommu.ioas_id = device.ioas_id;
	iommu.addr = at;
	iommu.iova = IOVA;
	ctl = (struct ktask_register_ctl)KTASK_REGISTER_CTL_INIT;
	ktest_check(ktask_register_iommufd(&ctl, &iommu) == 0);
	ktest_check(ctl.flags & KTASK_REGISTER_PARALLEL);
	ctl.unit_bytes = UNIT;
	ctl.max_piece_bytes = UNIT;
}

static int register_all(char *at)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;

	result = (struct ktask_result)KTASK_RESULT_INIT;
	opts.result = &result;
	opts.max_threads = 2;
	return ktask_register(&registration, at, LEN, &ctl, &opts);
}

static bool nothing_is_mapped(void)
{
	int64_t mapped = mock_unmap_all(&device);

	/* Of an empty address space the kernel says either. */
	return !registration && (mapped == 0 || mapped == -ENOENT) &&
	       counts_of_status(0, "VmPin:") == 0;
}

static void the_device_reaches_each_page(void **state)
{
	char *at = map_absent(LEN);
	long before = counts_pinned();

	(void)state;
	prepare_ctl(at);
	assert_int_equal(register_all(at), 0);
	assert_int_equal(result.chunks, NR_UNITS);
	assert_int_equal(result.units, LEN);
	assert_int_equal(mock_reaches(&device, at, LEN, IOVA), 0);
	assert_int_equal(counts_of_status(0, "VmPin:"), LEN / 1024);
	assert_int_equal(counts_pinned() - before, (long)(LEN / PAGE));
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_int_equal(mock_reaches(&device, at, PAGE, IOVA), -EINVAL);
	assert_true(nothing_is_mapped());
	assert_int_equal(counts_pinned(), before);
	munmap(at, LEN);
}

/* Whoever finds it: the library, or the device if it is told that all is present. */
static void a_hole_in_any_piece_takes_all_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * NR_UNITS; i++) {
		bool told = i % 2;
		char *at = map_absent(LEN);
		size_t hole = i / 2 * UNIT + i * 5 * PAGE;

		if (told)
			memset(at, 1, LEN);
		munmap(at + hole, PAGE);
		prepare_ctl(at);
		if (told)
			ctl.flags |= KTASK_REGISTER_PRESENT;
		assert_int_equal(register_all(at), told ? -EFAULT : -ENOMEM);
		assert_int_equal(result.fail_offset,
				 told ? hole / UNIT * UNIT : hole);
		assert_true(nothing_is_mapped());
		munmap(at, LEN);
	}
}

/* The address that the device would have is taken. */
static void a_refusal_of_any_piece_takes_all_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_UNITS; i++) {
		char *at = map_absent(LEN), *other = map_absent(PAGE);

		assert_int_equal(mock_map(&device, other, PAGE, IOVA + i * UNIT,
					  MOCK_FIXED | MOCK_READABLE),
				 0);
		prepare_ctl(at);
		assert_int_equal(register_all(at), -EEXIST);
		assert_int_equal(result.fail_offset, i * UNIT);
		assert_int_equal(mock_unmap_all(&device), (int64_t)PAGE);
		assert_true(nothing_is_mapped());
		munmap(other, PAGE);
		munmap(at, LEN);
	}
}

static int reach_limit(void *arg)
{
	ktest_check(limit_locking(LEN * 5 / 8));
	ktest_check(mock_open(&device) == 0);
	prepare_ctl(arg);
	ktest_check(register_all(arg) == -ENOMEM);
	ktest_check(result.fail_offset % UNIT == 0 && result.fail_offset < LEN);
	ktest_check(nothing_is_mapped());
	ktest_check(ktask_register(&registration, arg, LEN / 2, &ctl, NULL) ==
		    0);
	ktest_check(mock_reaches(&device, arg, LEN / 2, IOVA) == 0);
	ktest_check(ktask_unregister(&registration, NULL) == 0);
	ktest_check(nothing_is_mapped());
	return 0;
}

static void a_limit_in_the_middle_takes_all_back(void **state)
{
	char *at = map_absent(LEN);

	(void)state;
	assert_int_equal(ktest_in_child(reach_limit, at), 0);
	munmap(at, LEN);
}

static int forget_in_child(void *arg)
{
	(void)arg;
	ktest_check(ktask_unregister(&registration, NULL) == 0);
	ktest_check(!registration);
	return 0;
}

static void a_fork_leaves_the_parents_mappings_alone(void **state)
{
	char *at = map_absent(LEN);

	(void)state;
	prepare_ctl(at);
	assert_int_equal(register_all(at), 0);
	assert_int_equal(ktest_in_child(forget_in_child, NULL), 0);
	memset(at, 3, LEN);
	assert_int_equal(mock_reaches(&device, at, LEN, IOVA), 0);
	assert_int_equal(counts_of_status(0, "VmPin:"), LEN / 1024);
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_true(nothing_is_mapped());
	munmap(at, LEN);
}

static void hold_all(void *arg)
{
	char *at = map_absent(LEN);

	(void)arg;
	ktest_check(mock_open(&device) == 0);
	prepare_ctl(at);
	if (register_all(at) == 0)
		tell_parent();
	for (;;)
		pause();
}

static void a_killed_process_leaves_nothing(void **state)
{
	long before = counts_pinned();
	pid_t pid;

	(void)state;
	for (int i = 0; i < 3; i++) {
		pid = hold_in_child(hold_all, NULL);
		assert_int_equal(counts_pinned() - before, (long)(LEN / PAGE));
		kill_child(pid);
		assert_true(counts_return_to(counts_pinned, before));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KTEST(the_device_reaches_each_page),
		KTEST(a_hole_in_any_piece_takes_all_back),
		KTEST(a_refusal_of_any_piece_takes_all_back),
		KTEST(a_limit_in_the_middle_takes_all_back),
		KTEST(a_fork_leaves_the_parents_mappings_alone),
		KTEST(a_killed_process_leaves_nothing),
	};

	ktest_check(mock_open(&device) == 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
