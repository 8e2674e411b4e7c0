/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * register with VFIO and iommufd: the requests are those of linux/vfio.h and
 * linux/iommufd.h, addresses for the device follow those of the program, and what
 * the kernel refuses is told and taken back.  The kernel is made up here.
 */
#include "ktest.h"

#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "device.h"
#include "syscalls.h"

#define LEN (64 * MIB)
#define IOVA 0x100000000ull
#define DEVICE_FD 12345
#define IOAS 77

/* Written down from linux/iommufd.h of Linux 6.12: ';' 0x85 and 0x86. */
#define REQUEST_IOAS_MAP 0x3b85
#define REQUEST_IOAS_UNMAP 0x3b86

static struct device device;
static char *range;
static uint64_t refuse_from; /* iova */
static unsigned wanted_access; /* 1 read, 2 write */
static unsigned nr_wrong; /* requests */

/* Helpers ask beside the caller. */
static void note_wrong(bool wrong)
{
	__atomic_fetch_add(&nr_wrong, wrong, __ATOMIC_RELAXED);
}

static long add_mapping(uint64_t iova, uint64_t vaddr, uint64_t size,
			unsigned access)
{
	char *at = (char *)(uintptr_t)vaddr;

	pthread_mutex_lock(&device.lock);
	note_wrong(access != wanted_access);
	note_wrong(iova - IOVA != (uint64_t)(at - range));
	note_wrong(vaddr % page_bytes() || size % page_bytes());
	if (iova + size <= refuse_from)
		device_add(&device, at, at + size);
	pthread_mutex_unlock(&device.lock);
	return iova + size <= refuse_from ? 0 : -ENOSPC;
}

static long take_mapping(uint64_t iova, uint64_t size)
{
	char *at = range + (iova - IOVA);

	device_unregister(at, at + size, &device);
	return 0;
}

static long answer_vfio(unsigned long code, void *arg)
{
	struct vfio_iommu_type1_dma_map *map = arg;
	struct vfio_iommu_type1_dma_unmap *unmap = arg;

	if (code == VFIO_IOMMU_MAP_DMA) {
		note_wrong(map->argsz != sizeof(*map) || map->flags & ~3u);
		return add_mapping(map->iova, map->vaddr, map->size,
				   map->flags);
	}
	note_wrong(unmap->argsz != sizeof(*unmap) || unmap->flags);
	return take_mapping(unmap->iova, unmap->size);
}

static long answer_iommufd(unsigned long code, void *arg)
{
	uint32_t *words = arg;
	uint64_t *longs = arg;

	if (code == REQUEST_IOAS_MAP) {
		/* size 40, FIXED_IOVA 1 | WRITEABLE 2 | READABLE 4 */
		note_wrong(words[0] != 40 || !(words[1] & 1) ||
			   words[1] & ~7u || words[2] != IOAS || words[3]);
		return add_mapping(longs[4], longs[2], longs[3],
				   (words[1] >> 2 & 1) | (words[1] & 2));
	}
	note_wrong(words[0] != 24 || words[1] != IOAS);
	return take_mapping(longs[1], longs[2]);
}

static bool answer_ioctl(long number, const long args[6], long *result)
{
	unsigned long code = (unsigned long)args[1];
	void *arg = (void *)args[2];

	if (number != SYS_ioctl || args[0] != DEVICE_FD)
		return false;
	if (code == VFIO_IOMMU_MAP_DMA || code == VFIO_IOMMU_UNMAP_DMA)
		*result = answer_vfio(code, arg);
	else if (code == REQUEST_IOAS_MAP || code == REQUEST_IOAS_UNMAP)
		*result = answer_iommufd(code, arg);
	else
		*result = -ENOTTY;
	return true;
}

static struct ktask_iommu iommu_of(bool iommufd)
{
	struct ktask_iommu iommu = KTASK_IOMMU_INIT;

	iommu.fd = DEVICE_FD;
	iommu.ioas_id = iommufd ? IOAS : 0;
	iommu.addr = range;
	iommu.iova = IOVA;
	device_init(&device);
	device.any_order = iommufd;
	refuse_from = UINT64_MAX;
	wanted_access = 3;
	return iommu;
}

static int make_ctl(struct ktask_register_ctl *ctl, struct ktask_iommu *iommu,
		    bool iommufd)
{
	return iommufd ? ktask_register_iommufd(ctl, iommu)
		       : ktask_register_vfio(ctl, iommu);
}

static void begin_test(void)
{
	range = map_private(LEN);
	syscalls_answer = answer_ioctl;
}

static void end_test(void)
{
	syscalls_answer = NULL;
	munmap(range, LEN);
}

static void ranges_are_mapped_and_unmapped(void **state)
{
	const unsigned prots[] = { 0, PROT_READ, PROT_WRITE,
				   PROT_READ | PROT_WRITE };

	begin_test();
	for (unsigned i = 0; i < 8; i++) {
		struct ktask_registration *registration;
		struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
		bool iommufd = i % 2;
		struct ktask_iommu iommu = iommu_of(iommufd);

		iommu.prot = prots[i / 2];
		wanted_access = iommu.prot ? iommu.prot : 3;
		assert_int_equal(make_ctl(&ctl, &iommu, iommufd), 0);
		assert_int_equal(
			ktask_register(&registration, range, LEN, &ctl, NULL),
			0);
		assert_int_equal(device_bytes(&device), LEN);
		assert_int_equal(ktask_unregister(&registration, NULL), 0);
		assert_int_equal(device.nr, 0);
		assert_int_equal(device.wrong + nr_wrong, 0);
	}
	end_test();
}

static void refusals_in_the_middle_leave_nothing(void **state)
{
	begin_test();
	for (unsigned i = 0; i < 2; i++) {
		struct ktask_result result = KTASK_RESULT_INIT;
		struct ktask_opts opts = KTASK_OPTS_INIT;
		struct ktask_registration *registration;
		struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
		struct ktask_iommu iommu = iommu_of(i);

		opts.result = &result;
		refuse_from = IOVA + 40 * MIB;
		assert_int_equal(make_ctl(&ctl, &iommu, i), 0);
		ctl.unit_bytes = 2 * MIB;
		ctl.max_piece_bytes = 2 * MIB;
		assert_int_equal(
			ktask_register(&registration, range, LEN, &ctl, &opts),
			-ENOSPC);
		assert_true(result.fail_offset >= 40 * MIB);
		assert_true(i || result.fail_offset == 40 * MIB);
		assert_int_equal(device.nr, 0);
		assert_int_equal(device.wrong + nr_wrong, 0);
	}
	end_test();
}

static void bad_arguments_are_refused(void **state)
{
	struct ktask_register_ctl ctl = KTASK_REGISTER_CTL_INIT;
	struct ktask_iommu iommu;

	begin_test();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(make_ctl(&ctl, NULL, i), -EINVAL);
		iommu = iommu_of(i);
		assert_int_equal(make_ctl(NULL, &iommu, i), -EINVAL);
		iommu.iova++;
		assert_int_equal(make_ctl(&ctl, &iommu, i), -EINVAL);
		iommu = iommu_of(i);
		ctl.struct_size--;
		assert_int_equal(make_ctl(&ctl, &iommu, i), 0);
		ctl.struct_size = sizeof(size_t);
		assert_int_equal(make_ctl(&ctl, &iommu, i), -EINVAL);
		ctl.struct_size = sizeof(ctl);
		iommu.prot = PROT_EXEC;
		assert_int_equal(make_ctl(&ctl, &iommu, i), -EINVAL);
		iommu = iommu_of(i);
		iommu.padding = 1;
		assert_int_equal(make_ctl(&ctl, &iommu, i), -EINVAL);
		iommu = iommu_of(i);
		iommu.fd = -1;
		assert_int_equal(make_ctl(&ctl, &iommu, i), -EINVAL);
	}
	end_test();
}

KTEST_MAIN(KTEST(ranges_are_mapped_and_unmapped),
	   KTEST(refusals_in_the_middle_leave_nothing),
	   KTEST(bad_arguments_are_refused))
