/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Priorities: the lowest one for helpers, and lending the caller's.
 *
 * There are two modes.
 *
 * PRIO_LEND: the process may raise a thread again.  Helpers work as SCHED_IDLE with nice 19.
 * While parked, they have the priority of the process: a thread needs a CPU in order to
 * die, and exit and exec wait for that.
 *
 * PRIO_KEEP: the process may not raise a thread.  Nobody could help a lowered helper that is
 * in the last chunk.  So helpers keep their priority, and only as many run as CPUs idle
 * (user/limits/limits.c).
 */
#ifndef KTASK_USER_PRIO_H
#define KTASK_USER_PRIO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum prio_mode { PRIO_UNKNOWN, PRIO_LEND, PRIO_KEEP };

/* What a thread runs at; as sched_setattr(2) knows it. */
struct prio {
	uint32_t policy;
	int32_t nice;
	uint32_t rt_priority;
};

/* prio_mode - the mode of this process; PRIO_UNKNOWN before the first helper */
enum prio_mode prio_mode(void);

/* prio_may_lend - would PRIO_LEND hold, as far as rights tell?  No effects. */
bool prio_may_lend(void);

/*
 * prio_find_out - set the mode, with helper @tid, which was just made
 *
 * Rights do not say everything: a capability may be limited to a user namespace.  So this
 * tries one step of nice on @tid.  It does not wait until @tid has run, because on a busy
 * machine that takes longer than many jobs.
 *
 * Return: false if @tid could not be raised again and must end.
 */
bool prio_find_out(pid_t tid);

/* prio_lower - the calling helper goes to the lowest priority */
void prio_lower(void);

/*
 * prio_raise - give @tid, 0 the calling thread, the priority of the process
 *
 * That is the policy and nice value of the thread that made the first helper, or
 * SCHED_OTHER if that had a real-time policy.  Return: false if it is not allowed any
 * more; the mode is then PRIO_KEEP.
 */
bool prio_raise(pid_t tid);

/* prio_is_lowest - is @tid SCHED_IDLE? */
bool prio_is_lowest(pid_t tid);

/* prio_blocks - the calling helper waits more than it computes: up by a little
 * from the lowest priority */
void prio_blocks(void);

/* prio_take - the calling helper goes to @prio, which it was lent */
void prio_take(const struct prio *prio);

/* prio_lowest - is there nothing to lend in @prio? */
bool prio_lowest(const struct prio *prio);

/* prio_thread_gone - is there no thread of this id (any more)? */
bool prio_thread_gone(uint32_t tid);

/* prio_own - of the calling thread; false if unknown */
bool prio_own(struct prio *prio);

/*
 * prio_lend - raise helper @tid to @prio
 *
 * Return: false if it is not allowed any more.  The mode is then PRIO_KEEP, and helpers
 * that were lowered must end.
 */
bool prio_lend(pid_t tid, const struct prio *prio);

/* prio_fork_child - the child finds out for itself */
void prio_fork_child(void);

#endif /* KTASK_USER_PRIO_H */
