/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The time in which a thread had no CPU.  If that is long for a helper, other threads
 * want its CPU.
 *
 * It is the difference of two clocks that are not read at the same moment.  So it may go
 * back by the length of an interrupt between the two readings.
 */
#ifndef AHEAD_IDLE_CLOCK_H
#define AHEAD_IDLE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"

/* A helper that had no CPU for this long in a chunk leaves the rest. */
#define AHEAD_OFF_CPU_NS 1000000

static inline uint64_t ahead_idle_clock_ns(void)
{
	uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	return clock_ns(CLOCK_MONOTONIC) - cpu_ns;
}

/* Between two readings of that clock by the same thread. */
static inline bool ahead_was_off_cpu(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns > then_ns && now_ns - then_ns >= AHEAD_OFF_CPU_NS;
}

#endif /* AHEAD_IDLE_CLOCK_H */
