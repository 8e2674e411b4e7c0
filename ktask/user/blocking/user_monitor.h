/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The program's monitor of blocked threads, for the concurrency manager.
 */
#ifndef KTASK_USER_MONITOR_H
#define KTASK_USER_MONITOR_H

/* monitor_join - have the calling thread monitored, if there is a monitor; cheap
 * if it is already */
void monitor_join(void);

/* monitor_leave - the calling thread is no longer monitored */
void monitor_leave(void);

/*
 * monitor_ready - how many of @working threads are not blocked
 *
 * Return: -1 if that is not known: there is no monitor, it monitors other threads as
 * well, or it does not monitor all of these yet.
 */
int monitor_ready(unsigned working);

/* monitor_fd - polls readable when fewer may be ready; -1: no monitor */
int monitor_fd(void);

/* monitor_drain - make it unreadable */
void monitor_drain(void);

#endif /* KTASK_USER_MONITOR_H */
