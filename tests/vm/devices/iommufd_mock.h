/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * iommufd with the kernel's mock device (CONFIG_IOMMUFD_TEST), which tells which pages
 * it would reach: requests as the kernel has them, younger than many headers.
 */
#ifndef TESTS_VM_DEVICES_IOMMUFD_MOCK_H
#define TESTS_VM_DEVICES_IOMMUFD_MOCK_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define MOCK_REQUEST(number) _IO(';', number)
#define MOCK_ALLOC MOCK_REQUEST(0x81)
#define MOCK_MAP MOCK_REQUEST(0x85)
#define MOCK_UNMAP MOCK_REQUEST(0x86)
#define MOCK_TEST MOCK_REQUEST(0xa0)

/* Of MOCK_TEST. */
#define MOCK_ATTACH 2
#define MOCK_CHECK_MAP 3

#define MOCK_FIXED 0x1u
#define MOCK_WRITEABLE 0x2u
#define MOCK_READABLE 0x4u

/* Addresses that the mock device has. */
#define MOCK_FIRST_IOVA ((uint64_t)1 << 24)

struct mock_alloc {
	uint32_t size, flags, out_ioas_id;
};

struct mock_map {
	uint32_t size, flags, ioas_id, reserved;
	uint64_t user_va, length, iova;
};

struct mock_unmap {
	uint32_t size, ioas_id;
	uint64_t iova, length;
};

struct mock_test {
	uint32_t size, op, id, reserved;
	union {
		struct {
			uint32_t stdev_id, hwpt_id, idev_id;
		} attached;
		struct {
			uint64_t iova, length, user_va;
		} check;
		uint64_t padding[8];
	} u;
	uint32_t last;
};

/** An address space with a mock device attached to it. */
struct mock_device {
	int fd;
	uint32_t ioas_id;
	uint32_t hwpt_id; /* its page table */
};

/* mock_open - 0 or -errno */
static inline int mock_open(struct mock_device *device)
{
	struct mock_alloc alloc = { .size = sizeof(alloc) };
	struct mock_test attach = { .size = sizeof(attach), .op = MOCK_ATTACH };

	device->fd = open("/dev/iommu", O_RDWR | O_CLOEXEC);
	if (device->fd < 0 || ioctl(device->fd, MOCK_ALLOC, &alloc))
		return -errno;
	attach.id = alloc.out_ioas_id;
	if (ioctl(device->fd, MOCK_TEST, &attach))
		return -errno;
	device->ioas_id = alloc.out_ioas_id;
	device->hwpt_id = attach.u.attached.hwpt_id;
	return 0;
}

/* mock_map - 0 or -errno */
static inline int mock_map(const struct mock_device *device, const void *at,
			   size_t len, uint64_t iova, unsigned flags)
{
	struct mock_map map = {
		.size = sizeof(map),
		.flags = flags,
		.ioas_id = device->ioas_id,
		.user_va = (uintptr_t)at,
		.length = len,
		.iova = iova,
	};

	return ioctl(device->fd, MOCK_MAP, &map) ? -errno : 0;
}

/* mock_unmap_all - bytes that were mapped, or -errno */
static inline int64_t mock_unmap_all(const struct mock_device *device)
{
	struct mock_unmap unmap = { .size = sizeof(unmap),
				    .ioas_id = device->ioas_id,
				    .length = UINT64_MAX };

	if (ioctl(device->fd, MOCK_UNMAP, &unmap))
		return -errno;
	return (int64_t)unmap.length;
}

/* mock_reaches - 0: at @iova the device reaches the pages of [@at, @at + @len) */
static inline int mock_reaches(const struct mock_device *device, const void *at,
			       size_t len, uint64_t iova)
{
	struct mock_test test = { .size = sizeof(test),
				  .op = MOCK_CHECK_MAP,
				  .id = device->hwpt_id };

	test.u.check.iova = iova;
	test.u.check.length = len;
	test.u.check.user_va = (uintptr_t)at;
	return ioctl(device->fd, MOCK_TEST, &test) ? -errno : 0;
}

#endif /* TESTS_VM_DEVICES_IOMMUFD_MOCK_H */
