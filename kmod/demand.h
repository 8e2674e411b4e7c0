/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Demand: what the jobs of this machine want, so that they can share.
 */
#ifndef KTASK_KMOD_DEMAND_H
#define KTASK_KMOD_DEMAND_H

#include <linux/types.h>

/* demand_begin - a job that wants @helpers; an entry, or -1: too many jobs */
int demand_begin(unsigned int helpers);

void demand_end(int entry);

/* demand_share - helpers for the job now, of @limit for all of them */
unsigned int demand_share(int entry, unsigned int helpers, unsigned int limit);

#endif /* KTASK_KMOD_DEMAND_H */
