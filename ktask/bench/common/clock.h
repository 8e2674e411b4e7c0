/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The clocks that the benchmark reads.
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* CPU time of the whole process. */
static inline uint64_t clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static inline void clock_pause_ns(uint64_t ns)
{
	struct timespec pause = { (time_t)(ns / 1000000000u),
				  (long)(ns % 1000000000u) };

	nanosleep(&pause, NULL);
}

#endif /* BENCH_CLOCK_H */
