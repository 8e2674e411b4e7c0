/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Has a process a CPU quota?
 */
#ifndef KTASK_UTIL_CPU_QUOTA_H
#define KTASK_UTIL_CPU_QUOTA_H

#include <stdbool.h>

/*
 * cpu_quota_is_set - for its control group, of either version, or one above that
 * @groups: its /proc/PID/cgroup
 *
 * Allocates nothing.
 *
 * Return: true also where that cannot be known, as the text is too long.
 */
bool cpu_quota_is_set(const char *groups);

#endif /* KTASK_UTIL_CPU_QUOTA_H */
