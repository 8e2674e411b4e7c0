/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ways to map memory for a device behind an IOMMU, timed by turns: by plain calls, by
 * bare threads, and by ktask_register() with two threads.  Each way leaves nothing
 * mapped, and the test fails if the device had not all of the memory.
 */
#ifndef TESTS_VM_DEVICES_MAPPING_SIDES_H
#define TESTS_VM_DEVICES_MAPPING_SIDES_H

#include <stdbool.h>

#include <ktask/register.h>

#include "counts.h"

struct mapping_device {
	/* 0 or -errno */
	int (*map)(char *at, size_t len, uint64_t iova);
	/* Return: bytes that were mapped. */
	int64_t (*unmap_all)(void);
	/* Is this, and nothing else, mapped at @iova? */
	bool (*has)(const char *at, size_t len, uint64_t iova);
	int (*prepare)(struct ktask_register_ctl *ctl,
		       struct ktask_iommu *iommu);
	struct ktask_iommu iommu; /* for prepare */
};

/*
 * time_mappings - the tests of a program, for absent and for present memory
 *
 * Of absent memory it is told as well what two threads reach at best where one maps at a
 * time: the time of one call on memory that is there, or half of what one thread takes to
 * make the pages and map them, whichever is longer.
 *
 * Return: the program's exit status.
 */
int time_mappings(const struct mapping_device *device);

#endif /* TESTS_VM_DEVICES_MAPPING_SIDES_H */
