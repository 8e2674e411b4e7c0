/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * QEMU's device edu, bound to vfio-pci: mapping memory for it and taking it back.
 *
 * Children have the container of PID 1, so that what one of them has mapped stays
 * when it ends.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/vfio.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "facts.h"
#include "vfio_device.h"

#define DEVICES "/sys/bus/pci/devices"
#define EDU "0x11e8"

static int container = -1;

static bool find_device(char *name, size_t size)
{
	DIR *dir = opendir(DEVICES);
	struct dirent *entry;
	char path[400], id[16];
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), DEVICES "/%s/device",
			 entry->d_name);
		read_text(path, id, sizeof(id));
		found = !strncmp(id, EDU, strlen(EDU));
		if (found)
			snprintf(name, size, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

static int open_group(const char *device)
{
	char path[400], group[200];
	ssize_t len;

	snprintf(path, sizeof(path), DEVICES "/%s/driver_override", device);
	write_text(path, "vfio-pci");
	write_text("/sys/bus/pci/drivers_probe", device);
	snprintf(path, sizeof(path), DEVICES "/%s/iommu_group", device);
	len = readlink(path, group, sizeof(group) - 1);
	if (len < 0)
		return -1;
	group[len] = 0;
	snprintf(path, sizeof(path), "/dev/vfio%s", strrchr(group, '/'));
	return open(path, O_RDWR);
}

bool open_container(void)
{
	char device[256];
	int group;

	if (!find_device(device, sizeof(device)))
		return false;
	group = open_group(device);
	container = open("/dev/vfio/vfio", O_RDWR);
	return group >= 0 && container >= 0 &&
	       !ioctl(group, VFIO_GROUP_SET_CONTAINER, &container) &&
	       !ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU);
}

int map_for_device(void *addr, size_t len, uint64_t iova)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)addr,
		.iova = iova,
		.size = len,
	};

	return ioctl(container, VFIO_IOMMU_MAP_DMA, &map) ? errno : 0;
}

long unmap_for_device(size_t len, uint64_t iova)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap),
		.iova = iova,
		.size = len,
	};

	if (ioctl(container, VFIO_IOMMU_UNMAP_DMA, &unmap))
		return -errno;
	return (long)unmap.size;
}

void unmap_all(void)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap),
		.flags = VFIO_DMA_UNMAP_FLAG_ALL,
	};

	ioctl(container, VFIO_IOMMU_UNMAP_DMA, &unmap);
}

long pinned_pages(void)
{
	write_text("/proc/sys/vm/stat_refresh", "1");
	return number_in("/proc/vmstat", "nr_foll_pin_acquired ") -
	       number_in("/proc/vmstat", "nr_foll_pin_released ");
}

static int drop_capability(unsigned number)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
						 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return -1;
	data[number / 32].effective &= ~(1u << number % 32);
	return (int)syscall(SYS_capset, &head, data);
}

/* Root may still ask for exact counts. */
bool limit_locked_memory(size_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	return !setrlimit(RLIMIT_MEMLOCK, &limit) &&
	       !drop_capability(CAP_IPC_LOCK);
}
