/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A device behind an IOMMU: QEMU's edu, given to vfio-pci.
 */
#ifndef TESTS_VM_VFIO_DEVICE_H
#define TESTS_VM_VFIO_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* vfio_bind - give the device to vfio-pci; @device: its name, of @size bytes */
bool vfio_bind(char *device, size_t size);

/* vfio_open - a container of type1 with the device's group in it, or -1 */
int vfio_open(void);

/* vfio_map - for reading and writing; 0 or -errno */
int vfio_map(int container, const void *at, size_t len, uint64_t iova);

/* vfio_unmap, vfio_unmap_all - bytes that were mapped, or -errno */
int64_t vfio_unmap(int container, size_t len, uint64_t iova);
int64_t vfio_unmap_all(int container);

#endif /* TESTS_VM_VFIO_DEVICE_H */
