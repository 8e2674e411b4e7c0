/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Priorities: the lowest one for helpers, and lending the caller's.
 *
 * Two modes.  PRIO_LEND: the process may raise a thread again, so helpers run
 * as SCHED_IDLE and nice 19.  PRIO_KEEP: it may not; a lowered helper that
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
 * prio_find_out - set the mode, before the first helper is made
 *
 * Rights do not tell everything (a capability may be limited to a user
 * namespace), so a thread made for it tries on itself, with one step of nice.
 */
void prio_find_out(void);

/* prio_helper_begin - by a new helper: go down, where that can be undone */
void prio_helper_begin(void);

/* prio_blocks - the calling helper waits more than it computes: up by a little,
 * where prio_lower() went down */
void prio_blocks(void);

/* prio_take - the calling helper goes to @prio, which it was lent */
void prio_take(const struct prio *prio);

/* prio_lower - the calling helper goes (back) to the lowest priority */
void prio_lower(void);

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
