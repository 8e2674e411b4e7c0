/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Mapping memory for devices behind an IOMMU: VFIO's type1, and iommufd.
 *
 * type1 holds a mutex while it pins, so calls are made one after another.  For each run of
 * pages that lie side by side in memory it also takes the lock of the process's mappings
 * for writing, to account for them.  A thread that populates holds that lock for reading,
 * for a millisecond: beside it a call is slower than one that makes its pages itself.  So
 * pages are touched while type1 is called (presence.h).  iommufd pins outside the locks of
 * its address space, so several ranges can be pinned at once.
 *
 * Behaves badly with a type1 container whose limit of mappings (dma_entry_limit, 65535)
 * is small: each piece is one.
 *
 * Behaves badly with type1 and absent memory on kernels before 6.4: there a touch takes the
 * same lock for reading, if only for one page at a time.
 */
#include <errno.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/vfio.h>

#include "common/struct_size.h"
#include "op.h"
#include "register_device.h"
#include "util/iommufd.h"

/* Past the C library, whose function the preload shim takes over. */
static int call_ioctl(const struct ktask_iommu *iommu, unsigned long code,
		      void *arg)
{
	return syscall(SYS_ioctl, iommu->fd, code, arg) < 0 ? -errno : 0;
}

static uint64_t iova_of(const struct ktask_iommu *iommu, const char *pos)
{
	return iommu->iova + (uint64_t)(pos - (const char *)iommu->addr);
}

static bool may_read(const struct ktask_iommu *iommu)
{
	return !iommu->prot || iommu->prot & PROT_READ;
}

static bool may_write(const struct ktask_iommu *iommu)
{
	return !iommu->prot || iommu->prot & PROT_WRITE;
}

static int map_by_vfio(void *start, void *end, void *arg)
{
	const struct ktask_iommu *iommu = arg;
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = (may_read(iommu) ? VFIO_DMA_MAP_FLAG_READ : 0) |
			 (may_write(iommu) ? VFIO_DMA_MAP_FLAG_WRITE : 0),
		.vaddr = (uintptr_t)start,
		.iova = iova_of(iommu, start),
		.size = (uint64_t)((char *)end - (char *)start),
	};

	return call_ioctl(iommu, VFIO_IOMMU_MAP_DMA, &map);
}

static int unmap_by_vfio(void *start, void *end, void *arg)
{
	const struct ktask_iommu *iommu = arg;
	uint64_t bytes = (uint64_t)((char *)end - (char *)start);
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap),
		.iova = iova_of(iommu, start),
		.size = bytes,
	};
	int error = call_ioctl(iommu, VFIO_IOMMU_UNMAP_DMA, &unmap);

	/* It says how much was mapped there. */
	return !error && unmap.size != bytes ? -ENOENT : error;
}

static int map_by_iommufd(void *start, void *end, void *arg)
{
	const struct ktask_iommu *iommu = arg;
	struct ioas_map map = {
		.size = sizeof(map),
		.flags = IOAS_MAP_FIXED_IOVA |
			 (may_read(iommu) ? IOAS_MAP_READABLE : 0) |
			 (may_write(iommu) ? IOAS_MAP_WRITEABLE : 0),
		.ioas_id = iommu->ioas_id,
		.user_va = (uintptr_t)start,
		.length = (uint64_t)((char *)end - (char *)start),
		.iova = iova_of(iommu, start),
	};

	return call_ioctl(iommu, IOAS_MAP, &map);
}

static int unmap_by_iommufd(void *start, void *end, void *arg)
{
	const struct ktask_iommu *iommu = arg;
	struct ioas_unmap unmap = {
		.size = sizeof(unmap),
		.ioas_id = iommu->ioas_id,
		.iova = iova_of(iommu, start),
		.length = (uint64_t)((char *)end - (char *)start),
	};

	return call_ioctl(iommu, IOAS_UNMAP, &unmap);
}

static int prepare_iommu(struct ktask_register_ctl *ctl,
			 struct ktask_iommu *iommu, unsigned flags,
			 ktask_register_func add, ktask_register_func take)
{
	size_t page = op_page_bytes();
	int error = register_device_init(
		ctl, iommu, STRUCT_SIZE_TO(struct ktask_iommu, padding),
		sizeof(*iommu), add, take);

	if (error)
		return error;
	if (iommu->fd < 0 || iommu->padding ||
	    iommu->prot & ~(unsigned)(PROT_READ | PROT_WRITE) ||
	    (uintptr_t)iommu->addr % page || iommu->iova % page)
		return -EINVAL;
	ctl->flags = flags | (may_write(iommu) ? 0 : KTASK_REGISTER_READ);
	return 0;
}

int ktask_register_vfio(struct ktask_register_ctl *ctl,
			struct ktask_iommu *iommu)
{
	return prepare_iommu(ctl, iommu, KTASK_REGISTER_LOCKS_MAPPINGS,
			     map_by_vfio, unmap_by_vfio);
}

int ktask_register_iommufd(struct ktask_register_ctl *ctl,
			   struct ktask_iommu *iommu)
{
	return prepare_iommu(ctl, iommu,
			     KTASK_REGISTER_PARALLEL |
				     KTASK_REGISTER_MAKES_PAGES,
			     map_by_iommufd, unmap_by_iommufd);
}
