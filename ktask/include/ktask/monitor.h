/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * ktask: who tells which threads of a job are blocked.
 *
 * A job whose threads block in the kernel is given others in their place.
 * Without a monitor the library looks at its threads every millisecond or two.
 * With one it is told, so that it looks when something has happened: of
 * user-monitored threads by ktask/umt.h.
 */
#ifndef KTASK_MONITOR_H
#define KTASK_MONITOR_H

#include <ktask/ktask.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct ktask_monitor - what the library wants to know
 * @add: the calling thread, which works in a job that blocks, is monitored from
 *	now on; 0 or a negative errno
 * @remove: no longer
 * @ready: how many threads that were added are not blocked now; any thread
 * @fd: polls readable when it may be fewer than before
 * @calm: make it unreadable
 *
 * No call may start a job.  What it needs must stay as long as the process, or
 * until ktask_set_monitor() has taken it away.
 */
struct ktask_monitor {
	size_t struct_size; /* sizeof(struct ktask_monitor) */
	void *arg; /* of all calls */
	int (*add)(void *arg);
	void (*remove)(void *arg);
	int (*ready)(void *arg);
	int fd;
	void (*calm)(void *arg);
};

/**
 * ktask_set_monitor - use it for the jobs that begin from now on
 * @monitor: copied; NULL: none
 *
 * Not inherited by the child of a fork.
 *
 * Return: 0; -EBUSY while jobs run (not for one that began without helpers, beside
 * busy CPUs); -EINVAL for a missing call; -E2BIG.
 */
KTASK_API int ktask_set_monitor(const struct ktask_monitor *monitor);

#ifdef __cplusplus
}
#endif

#endif /* KTASK_MONITOR_H */
