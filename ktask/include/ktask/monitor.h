/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask: a monitor tells the library how many threads of a job are blocked.
 *
 * While threads of a job are blocked in the kernel, other threads replace them.
 * Without a monitor the library samples its threads every millisecond or two.
 * With one it samples them only after something has changed.  ktask/umt.h makes
 * user-monitored threads the monitor.
 */
#ifndef KTASK_MONITOR_H
#define KTASK_MONITOR_H

#include <ktask/ktask.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct ktask_monitor - the calls of a monitor
 * @add: monitor the calling thread, which works in a job that blocks; 0 or a
 *	negative errno
 * @remove: stop monitoring the calling thread
 * @ready: how many added threads are not blocked now; called by any thread
 * @fd: polls readable when @ready may return less than before
 * @drain: read @fd, so that it no longer polls readable
 *
 * None of the calls may start a job.  What they need must exist until
 * ktask_set_monitor() has removed the monitor, or until the process ends.
 */
struct ktask_monitor {
	size_t struct_size; /* sizeof(struct ktask_monitor) */
	void *arg; /* of all calls */
	int (*add)(void *arg);
	void (*remove)(void *arg);
	int (*ready)(void *arg);
	int fd;
	void (*drain)(void *arg);
};

/**
 * ktask_set_monitor - set the monitor of all jobs that begin from now on
 * @monitor: copied; NULL: none
 *
 * The child of a fork has no monitor.
 *
 * Return: 0; -EBUSY while jobs run (a job that began without helpers, because the
 * CPUs were busy, does not count); -EINVAL if a call is missing; -E2BIG.
 */
KTASK_API int ktask_set_monitor(const struct ktask_monitor *monitor);

#ifdef __cplusplus
}
#endif

#endif /* KTASK_MONITOR_H */
