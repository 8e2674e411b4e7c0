/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Requests of iommufd, as the kernel has them: its header linux/iommufd.h is younger
 * (6.2) than the headers of many.
 */
#ifndef KTASK_UTIL_IOMMUFD_H
#define KTASK_UTIL_IOMMUFD_H

#include <linux/vfio.h>
#include <stdint.h>

#define IOAS_MAP _IO(VFIO_TYPE, 0x85)
#define IOAS_UNMAP _IO(VFIO_TYPE, 0x86)
#define IOAS_MAP_FIXED_IOVA 0x1u
#define IOAS_MAP_WRITEABLE 0x2u
#define IOAS_MAP_READABLE 0x4u

struct ioas_map {
	uint32_t size;
	uint32_t flags;
	uint32_t ioas_id;
	uint32_t reserved;
	uint64_t user_va;
	uint64_t length;
	uint64_t iova;
};

struct ioas_unmap {
	uint32_t size;
	uint32_t ioas_id;
	uint64_t iova;
	uint64_t length;
};

#endif /* KTASK_UTIL_IOMMUFD_H */
