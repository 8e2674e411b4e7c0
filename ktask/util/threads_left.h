/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How many threads this process may still make, as far as files tell.
 */
#ifndef KTASK_UTIL_THREADS_LEFT_H
#define KTASK_UTIL_THREADS_LEFT_H

#include <stdint.h>

/*
 * threads_left_in_groups - the least that the control groups around this process
 * leave (pids.max), of either version
 *
 * Allocates nothing.
 *
 * Return: UINT64_MAX where there is no limit, or nobody knows.
 */
uint64_t threads_left_in_groups(void);

#endif /* KTASK_UTIL_THREADS_LEFT_H */
