/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Clocks as one number.
 */
#ifndef KTASK_UTIL_CLOCK_H
#define KTASK_UTIL_CLOCK_H

#include <stdint.h>
#include <sys/time.h>
#include <time.h>

/* clock_ns - nanoseconds of a clock that clock_gettime(2) knows; 0 of another */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline double clock_seconds(clockid_t clock)
{
	return (double)clock_ns(clock) / 1e9;
}

static inline double timeval_seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

#endif /* KTASK_UTIL_CLOCK_H */
