/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The monotonic clock as one number.  ktask has the same in its util, which other
 * products do not see.
 */
#ifndef UMT_MONOTONIC_CLOCK_H
#define UMT_MONOTONIC_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif /* UMT_MONOTONIC_CLOCK_H */
