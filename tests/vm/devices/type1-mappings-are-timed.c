/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What mapping memory by VFIO's type1 takes, for a device behind an IOMMU: each way that
 * mapping_sides.h has.  The verdict is that all of the memory was pinned and mapped.
 */
#include <errno.h>

#include "mapping_sides.h"
#include "../vfio_device.h"

#define IOVA ((uint64_t)1 << 30)

static struct mapping_device device;
static long pinned_before;

static int map_type1(char *at, size_t len, uint64_t iova)
{
	return vfio_map(device.iommu.fd, at, len, iova);
}

static int64_t unmap_type1(void)
{
	return vfio_unmap_all(device.iommu.fd);
}

/* Where the device has it, type1 does not tell. */
static bool has_pinned(const char *at, size_t len, uint64_t iova)
{
	(void)at;
	(void)iova;
	return counts_pinned() - pinned_before == (long)(len / PAGE);
}

int main(void)
{
	device = (struct mapping_device){
		.map = map_type1,
		.unmap_all = unmap_type1,
		.has = has_pinned,
		.prepare = ktask_register_vfio,
		.iommu = KTASK_IOMMU_INIT,
	};
	device.iommu.fd = vfio_open();
	device.iommu.iova = IOVA;
	ktest_check(device.iommu.fd >= 0);
	pinned_before = counts_pinned();
	return time_mappings(&device);
}
