/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Monitor: threads that are told of, for those who manage compensating helpers.
 */
#ifndef KTASK_USER_MONITOR_H
#define KTASK_USER_MONITOR_H

/* monitor_join - the calling thread, if there is a monitor; cheap when done */
void monitor_join(void);

/* monitor_leave - the same, at the end of its work */
void monitor_leave(void);

/*
 * monitor_ready - how many of @working threads are not blocked
 *
 * Return: -1 if that is not known: there is no monitor, other threads are monitored as
 * well, or not all of these yet.
 */
int monitor_ready(unsigned working);

/* monitor_fd - polls readable when it may be fewer; -1 none */
int monitor_fd(void);
void monitor_calm(void);

#endif /* KTASK_USER_MONITOR_H */
