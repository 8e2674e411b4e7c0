/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Finding the device, giving it to vfio-pci, and mapping memory for it.
 *
 * Linked into PID 1 of several guests and into programs that they run, so it needs
 * nothing of either.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vfio_device.h"

#define DEVICES "/sys/bus/pci/devices"

static bool has_id(const char *device, const char *file, const char *wanted)
{
	char path[400], id[16] = "";
	FILE *in;

	snprintf(path, sizeof(path), DEVICES "/%s/%s", device, file);
	in = fopen(path, "re");
	if (in && !fgets(id, sizeof(id), in))
		id[0] = 0;
	if (in)
		fclose(in);
	return !strncmp(id, wanted, strlen(wanted));
}

static bool find_edu(char *name, size_t size)
{
	struct dirent *entry;
	DIR *dir = opendir(DEVICES);
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		found = has_id(entry->d_name, "vendor", "0x1234") &&
			has_id(entry->d_name, "device", "0x11e8");
		if (found)
			snprintf(name, size, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void write_line(const char *path, const char *line)
{
	FILE *out = fopen(path, "we");

	if (!out)
		return;
	fputs(line, out);
	fclose(out);
}

bool vfio_bind(char *device, size_t size)
{
	char path[400];

	if (!find_edu(device, size))
		return false;
	snprintf(path, sizeof(path), DEVICES "/%s/driver_override", device);
	write_line(path, "vfio-pci");
	write_line("/sys/bus/pci/drivers_probe", device);
	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/vfio-pci/%s",
		 device);
	return !access(path, F_OK);
}

static int open_group(const char *device)
{
	char path[400], group[200];
	ssize_t len;

	snprintf(path, sizeof(path), DEVICES "/%s/iommu_group", device);
	len = readlink(path, group, sizeof(group) - 1);
	if (len < 0)
		return -1;
	group[len] = 0;
	snprintf(path, sizeof(path), "/dev/vfio%s", strrchr(group, '/'));
	return open(path, O_RDWR | O_CLOEXEC);
}

int vfio_open(void)
{
	char device[256];
	int container, group;

	if (!vfio_bind(device, sizeof(device)))
		return -1;
	group = open_group(device);
	container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	if (group < 0 || container < 0 ||
	    ioctl(group, VFIO_GROUP_SET_CONTAINER, &container) ||
	    ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU))
		return -1;
	return container;
}

int vfio_map(int container, const void *at, size_t len, uint64_t iova)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)at,
		.iova = iova,
		.size = len,
	};

	return ioctl(container, VFIO_IOMMU_MAP_DMA, &map) ? -errno : 0;
}

static int64_t unmap_dma(int container,
			 struct vfio_iommu_type1_dma_unmap *unmap)
{
	unmap->argsz = sizeof(*unmap);
	if (ioctl(container, VFIO_IOMMU_UNMAP_DMA, unmap))
		return -errno;
	return (int64_t)unmap->size;
}

int64_t vfio_unmap(int container, size_t len, uint64_t iova)
{
	struct vfio_iommu_type1_dma_unmap unmap = { .iova = iova, .size = len };

	return unmap_dma(container, &unmap);
}

int64_t vfio_unmap_all(int container)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.flags = VFIO_DMA_UNMAP_FLAG_ALL,
	};

	return unmap_dma(container, &unmap);
}
