/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Priorities: the lowest one for helpers, and lending the caller's.
 *
 * Two modes.  PRIO_LEND: the process may raise a thread again, so helpers work
 * as SCHED_IDLE and nice 19, and have the priority of the process while they
 * are parked: a thread needs a CPU in order to die, and who ends or executes a
 * process waits for that.  PRIO_KEEP: it may not; a lowered helper that
 * holds the last chunk could never be helped, so helpers keep their priority
 * and only as many run as CPUs are idle (lib/limits.c).
 */
#ifndef KTASK_LIB_PRIO_H
#define KTASK_LIB_PRIO_H

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
 * prio_find_out - set the mode, by a helper @tid that was just made
 *
 * Rights do not tell everything (a capability may be limited to a user
 * namespace), so it is tried with one step of nice.  Nobody waits until @tid has
 * run: on a busy machine that takes longer than many a job.
 *
 * Return: false if @tid could not be raised again and must end.
 */
bool prio_find_out(pid_t tid);

/* prio_lower - the calling helper goes to the lowest priority */
void prio_lower(void);

/*
 * prio_raise - @tid, 0 the calling thread, gets the priority of the process
 *
 * That is the policy and nice value that the thread had which made the first
 * helper; SCHED_OTHER where it had a real-time policy.  Return: false when it
 * is no longer allowed; the mode is then PRIO_KEEP.
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
 * Return: false when that is no longer allowed; the mode is then PRIO_KEEP and
 * helpers that were lowered must end.
 */
bool prio_lend(pid_t tid, const struct prio *prio);

/* prio_fork_child - the child finds out for itself */
void prio_fork_child(void);

#endif /* KTASK_LIB_PRIO_H */
