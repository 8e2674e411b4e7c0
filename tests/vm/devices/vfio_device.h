/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A device behind an IOMMU: QEMU's edu, given to vfio-pci.
 */
#ifndef TESTS_VM_DEVICES_VFIO_DEVICE_H
#define TESTS_VM_DEVICES_VFIO_DEVICE_H

/* vfio_open - a container of type1 with the device's group in it, or -1 */
int vfio_open(void);

#endif /* TESTS_VM_DEVICES_VFIO_DEVICE_H */
