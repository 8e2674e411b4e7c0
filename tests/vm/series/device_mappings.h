/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Mapping memory for a device behind an IOMMU.
 */
#ifndef KTASK_SERIES_DEVICE_MAPPINGS_H
#define KTASK_SERIES_DEVICE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* open_container - whether there is a device; the container is this program's */
bool open_container(void);

/* map_for_device - 0 or a positive errno */
int map_for_device(void *addr, size_t len, uint64_t iova);

/* unmap_for_device - bytes that were unmapped, or a negative errno */
long unmap_for_device(size_t len, uint64_t iova);
void unmap_all(void);

/* pinned_pages - that are pinned on this machine now */
long pinned_pages(void);

/* limit_locked_memory - of this process, which may lock no more than that from now on */
bool limit_locked_memory(size_t bytes);

#endif /* KTASK_SERIES_DEVICE_MAPPINGS_H */
