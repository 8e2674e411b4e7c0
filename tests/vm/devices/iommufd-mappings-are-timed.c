/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What mapping memory for iommufd's mock device takes: each way that mapping_sides.h has.
 * The verdict is that the device reaches the memory.
 */
#include "iommufd_mock.h"
#include "mapping_sides.h"

static struct mock_device mock;
static struct mapping_device device;

static int map_mock(char *at, size_t len, uint64_t iova)
{
	return mock_map(&mock, at, len, iova,
			MOCK_FIXED | MOCK_READABLE | MOCK_WRITEABLE);
}

static int64_t unmap_mock(void)
{
	return mock_unmap_all(&mock);
}

static bool mock_has(const char *at, size_t len, uint64_t iova)
{
	return mock_reaches(&mock, at, PAGE, iova) == 0 &&
	       mock_reaches(&mock, at + len - PAGE, PAGE, iova + len - PAGE) ==
		       0;
}

int main(void)
{
	ktest_check(mock_open(&mock) == 0);
	device = (struct mapping_device){
		.map = map_mock,
		.unmap_all = unmap_mock,
		.has = mock_has,
		.prepare = ktask_register_iommufd,
		.iommu = KTASK_IOMMU_INIT,
	};
	device.iommu.fd = mock.fd;
	device.iommu.ioas_id = mock.ioas_id;
	device.iommu.iova = 2 * MOCK_FIRST_IOVA;
	return time_mappings(&device);
}
