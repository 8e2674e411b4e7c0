/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Demand: the jobs that want helpers, so that they can share and be seen.
 */
#ifndef KTASK_KMOD_DEMAND_H
#define KTASK_KMOD_DEMAND_H

#include <linux/types.h>

struct kernel_job;
struct seq_file;

/* demand_begin - @job wants @helpers; an entry, or -1: too many jobs */
int demand_begin(struct kernel_job *job, unsigned int helpers);

/* demand_end - from here on nobody else looks at the job */
void demand_end(int entry);

/* demand_share - helpers for the job now, of @limit for all of them */
unsigned int demand_share(int entry, unsigned int helpers, unsigned int limit);

/* demand_show - a line for each job */
void demand_show(struct seq_file *m);

#endif /* KTASK_KMOD_DEMAND_H */
