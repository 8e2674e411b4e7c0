/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The time that a job will still take, for progress and `ktask top`.
 */
#ifndef KTASK_UTIL_REMAINING_H
#define KTASK_UTIL_REMAINING_H

#include <stdint.h>

/* At the rate so far; 0 unknown, as it is when centuries would be left. */
static inline uint64_t remaining_ns(uint64_t elapsed_ns, uint64_t done,
				    uint64_t left)
{
	double ns;

	if (!done)
		return 0;
	ns = (double)elapsed_ns / (double)done * (double)left;
	return ns < (double)INT64_MAX ? (uint64_t)ns : 0;
}

#endif /* KTASK_UTIL_REMAINING_H */
