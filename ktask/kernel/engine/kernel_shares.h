/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shares: the jobs that want helpers, so that they can share and be seen.
 */
#ifndef KTASK_KERNEL_SHARES_H
#define KTASK_KERNEL_SHARES_H

#include <linux/types.h>

struct kernel_job;
struct seq_file;

/* shares_register - @job wants @helpers; an entry, or -1: too many jobs */
int shares_register(struct kernel_job *job, unsigned int helpers);

/* shares_unregister - after this returns no other thread reads the job */
void shares_unregister(int entry);

/* shares_helpers - helpers for the job now, of @limit for all of them */
unsigned int shares_helpers(int entry, unsigned int helpers,
			    unsigned int limit);

/* shares_show - a line for each job */
void shares_show(struct seq_file *m);

#endif /* KTASK_KERNEL_SHARES_H */
