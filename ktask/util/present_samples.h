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

/* sample_pos - of sample @i of [start, end), the last of which is its last page */
static inline uintptr_t sample_pos(uintptr_t start, uintptr_t end, unsigned i)
{
	uintptr_t step = (end - start) / PRESENT_SAMPLES;

	return i == PRESENT_SAMPLES ? end - 1 : start + i * step + step / 2;
}

/* samples_are_present - all samples of [start, end) */
static inline bool samples_are_present(uintptr_t start, uintptr_t end)
{
	for (unsigned i = 0; i <= PRESENT_SAMPLES; i++)
		if (!page_is_present(sample_pos(start, end, i)))
			return false;
	return true;
}

#endif /* KTASK_UTIL_PRESENT_SAMPLES_H */
