/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Rate: work in a given time, as a whole number, because the kernel has no floating
 * point.
 *
 * The time is 2^KT_RATE_SHIFT ns, 2.4 h: that is exact enough for units that take
 * minutes, and 2^50 units a second still fit.
 */
#ifndef KTASK_CORE_RATE_H
#define KTASK_CORE_RATE_H

#include "core/deps.h"

#define KT_RATE_SHIFT 43
#define KT_RATE_NS (1ull << KT_RATE_SHIFT)

/* kt_rate - of @units in @ns, which is not 0; without overflow */
static inline uint64_t kt_rate(uint64_t units, uint64_t ns)
{
	unsigned shift = 0;

	while (units >> shift >= 1u << 20)
		shift++;
	units = (units >> shift) * KT_RATE_NS / ns;
	return units > UINT64_MAX >> shift ? UINT64_MAX : units << shift;
}

/* kt_distance - between two rates */
static inline uint64_t kt_distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

#endif /* KTASK_CORE_RATE_H */
