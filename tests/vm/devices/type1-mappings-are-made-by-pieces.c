/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask_register() with VFIO's type1 and a device behind an IOMMU: what is mapped is
 * pinned, and nothing is after ktask_unregister(), after an error in any piece, a limit
 * that was reached in the middle, and the end of a process that was killed.
 */
#include <errno.h>
#include <ktask/register.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counts.h"
#include "../vfio_device.h"

#define UNIT (4 * MIB)
#define NR_UNITS 10
#define LEN (NR_UNITS * UNIT)
#define IOVA ((uint64_t)1 << 30)

static int container = -1;
static struct ktask_iommu iommu;
static struct ktask_register_ctl ctl;
static struct ktask_registration *registration;
static struct ktask_result result;

static void prepare_ctl(char *at)
{
	iommu = (struct ktask_iommu)KTASK_IOMMU_INIT;
	iommu.fd = container;
	iommu.addr = at;
	iommu.iova = IOVA;
	ctl = (struct ktask_register_ctl)KTASK_REGISTER_CTL_INIT;
	ktest_check(ktask_register_vfio(&ctl, &iommu) == 0);
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

static void each_piece_is_mapped_until_it_is_taken_back(void **state)
{
	struct ktask_registration *again;
	char *at = map_absent(LEN);
	long before = counts_pinned();

	(void)state;
	prepare_ctl(at);
	assert_int_equal(register_all(at), 0);
	assert_int_equal(result.chunks, NR_UNITS);
	assert_int_equal(counts_pinned() - before, (long)(LEN / PAGE));
	assert_int_equal(counts_present(at, LEN), LEN / PAGE);
	/* Where it is mapped already the device refuses. */
	assert_int_equal(ktask_register(&again, at, LEN, &ctl, NULL), -EEXIST);
	assert_null(again);
	assert_int_equal(counts_pinned() - before, (long)(LEN / PAGE));
	assert_int_equal(ktask_unregister(&registration, NULL), 0);
	assert_int_equal(counts_pinned(), before);
	assert_int_equal(vfio_unmap_all(container), 0);
	munmap(at, LEN);
}

static void a_hole_in_any_piece_takes_all_back(void **state)
{
	long before = counts_pinned();

	(void)state;
	for (size_t i = 0; i < NR_UNITS; i++) {
		char *at = map_absent(LEN);
		size_t hole = i * UNIT + i * 37 * PAGE;

		munmap(at + hole, PAGE);
		prepare_ctl(at);
		assert_int_equal(register_all(at), -ENOMEM);
		assert_int_equal(result.fail_offset, hole);
		assert_null(registration);
		assert_int_equal(vfio_unmap_all(container), 0);
		assert_int_equal(counts_pinned(), before);
		munmap(at, LEN);
	}
}

/* The address that the device would have is taken. */
static void a_refusal_of_any_piece_takes_all_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_UNITS; i++) {
		char *at = map_absent(LEN), *other = map_absent(PAGE);

		assert_int_equal(
			vfio_map(container, other, PAGE, IOVA + i * UNIT), 0);
		prepare_ctl(at);
		assert_int_equal(register_all(at), -EEXIST);
		assert_int_equal(result.fail_offset, i * UNIT);
		assert_int_equal(vfio_unmap_all(container), PAGE);
		munmap(other, PAGE);
		munmap(at, LEN);
	}
}

static int reach_limit(void *arg)
{
	ktest_check(limit_locking(LEN * 5 / 8));
	prepare_ctl(arg);
	ktest_check(register_all(arg) == -ENOMEM);
	/* In order: the first piece that does not fit. */
	ktest_check(result.fail_offset == LEN * 5 / 8 / UNIT * UNIT);
	ktest_check(counts_of_status(0, "VmLck:") == 0 && !registration);
	ktest_check(vfio_unmap_all(container) == 0);
	return 0;
}

static void a_limit_in_the_middle_takes_all_back(void **state)
{
	char *at = map_absent(LEN);
	long before = counts_pinned();

	(void)state;
	assert_int_equal(ktest_in_child(reach_limit, at), 0);
	assert_true(counts_return_to(counts_pinned, before));
	munmap(at, LEN);
}

static void hold_all(void *arg)
{
	char *at = map_absent(LEN);

	(void)arg;
	container = vfio_open();
	ktest_check(container >= 0);
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
	for (int i = 0; i < 2; i++) {
		pid = hold_in_child(hold_all, NULL);
		assert_int_equal(counts_pinned() - before, (long)(LEN / PAGE));
		kill_child(pid);
		assert_true(counts_return_to(counts_pinned, before));
	}
}

/* The device's group has one owner at a time. */
static void the_device_is_taken(void **state)
{
	(void)state;
	container = vfio_open();
	assert_true(container >= 0);
}

KTEST_MAIN(KTEST(a_killed_process_leaves_nothing), KTEST(the_device_is_taken),
	   KTEST(each_piece_is_mapped_until_it_is_taken_back),
	   KTEST(a_hole_in_any_piece_takes_all_back),
	   KTEST(a_refusal_of_any_piece_takes_all_back),
	   KTEST(a_limit_in_the_middle_takes_all_back))
