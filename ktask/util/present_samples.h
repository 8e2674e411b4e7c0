/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Is memory there already?  Samples tell, so that a large range costs as much as a
 * small one.
 */
#ifndef KTASK_UTIL_PRESENT_SAMPLES_H
#define KTASK_UTIL_PRESENT_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define PRESENT_SAMPLES 16

/* What is not mapped is not present. */
static inline bool page_is_present(uintptr_t pos)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char there = 0;

	return !mincore((void *)(pos & ~(page - 1)), page, &there) && there & 1;
}

/* samples_are_present - all samples of [start, end), and its last page */
static inline bool samples_are_present(uintptr_t start, uintptr_t end)
{
	uintptr_t step = (end - start) / PRESENT_SAMPLES;

	for (uintptr_t i = 0; i < PRESENT_SAMPLES; i++)
		if (!page_is_present(start + i * step + step / 2))
			return false;
	return page_is_present(end - 1);
}

#endif /* KTASK_UTIL_PRESENT_SAMPLES_H */
