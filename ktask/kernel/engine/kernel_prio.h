/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Priorities: what a helper runs at, and what a waiting caller lends it.
 */
#ifndef KTASK_KERNEL_PRIO_H
#define KTASK_KERNEL_PRIO_H

#include <linux/types.h>

struct task_struct;

/* What a thread runs at, as far as it can be lent. */
struct prio {
	int rt; /* real-time priority, 1 to 99; 0 none */
	int nice;
};

/* prio_own - of the calling thread, inherited boosts included */
void prio_own(struct prio *prio);

/* prio_lowest - is it so low that lending it gains nothing? */
bool prio_lowest(const struct prio *prio);

/* prio_same - are they equal, so that there is nothing new to lend? */
bool prio_same(const struct prio *a, const struct prio *b);

/* prio_lend - let @helper run at @prio; may sleep */
void prio_lend(struct task_struct *helper, const struct prio *prio);

/* prio_lower - set the calling helper to the lowest priority */
void prio_lower(void);

#endif /* KTASK_KERNEL_PRIO_H */
