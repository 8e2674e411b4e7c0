/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How much memory this process may use without harm.
 */
#ifndef KTASK_UTIL_MEMORY_H
#define KTASK_UTIL_MEMORY_H

#include <stdint.h>

/*
 * memory_available - bytes that can be had without swapping, being throttled or
 * an OOM kill
 *
 * The least of what the machine has available and what the control groups, of either
 * version, around this process leave.  Under memory.high page cache that the group could
 * drop counts as available.  Under other limits it counts as used, so the answer errs
 * on the small side.  Allocates nothing.
 *
 * Return: UINT64_MAX where nothing is known.
 */
uint64_t memory_available(void);

/* memory_available_to - the same for another process: its /proc/PID/cgroup */
uint64_t memory_available_to(const char *groups);

/* memory_left_in_groups - the same, but only what its control groups leave; UINT64_MAX:
 * they have no limit */
uint64_t memory_left_in_groups(const char *groups);

/* memory_available_on_machine - the same without control groups: MemAvailable */
uint64_t memory_available_on_machine(void);

#endif /* KTASK_UTIL_MEMORY_H */
