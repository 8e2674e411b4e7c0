// SPDX-License-Identifier: GPL-2.0-only
/*
 * Priorities of helpers: nice 19, or what a waiting caller lends.
 *
 * Helpers are not SCHED_IDLE, because a helper may hold a kernel lock that others wait
 * for.  The weight of SCHED_IDLE is 3, that of nice 19 is 15: on a busy machine the lock
 * would be held five times as long.
 */
#include <linux/sched.h>
#include <linux/sched/prio.h>
#include <uapi/linux/sched/types.h>

#include "kernel/engine/kernel_prio.h"

void prio_own(struct prio *prio)
{
	int effective = READ_ONCE(current->prio);

	prio->nice = task_nice(current);
	prio->rt = 0;
	if (effective >= MAX_RT_PRIO)
		return;
	/* The bandwidth of a deadline cannot be lent.  Lend the highest priority that can. */
	prio->rt =
		effective < 0 ? MAX_RT_PRIO - 1 : MAX_RT_PRIO - 1 - effective;
}

bool prio_lowest(const struct prio *prio)
{
	return !prio->rt && prio->nice == MAX_NICE;
}

bool prio_same(const struct prio *a, const struct prio *b)
{
	return a->rt == b->rt && a->nice == b->nice;
}

void prio_lend(struct task_struct *helper, const struct prio *prio)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = prio->rt,
	};

	if (prio->rt)
		sched_setattr_nocheck(helper, &attr);
	else
		sched_set_normal(helper, prio->nice);
}

void prio_lower(void)
{
	sched_set_normal(current, MAX_NICE);
}
