/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inherit: what a helper takes over from the caller while it is in a job.
 */
#ifndef KTASK_KERNEL_INHERIT_H
#define KTASK_KERNEL_INHERIT_H

#include <linux/sched.h>

struct kernel_job;

/* inherit_scope - the allocation scope of the calling thread: the PF_MEMALLOC* flags that
 * memalloc_nofs_save() and its like set */
static inline unsigned int inherit_scope(void)
{
	return current->flags &
	       (PF_MEMALLOC | PF_MEMALLOC_NOIO | PF_MEMALLOC_NOFS);
}

/*
 * inherit_from_caller - called by a helper before its first chunk
 * inherit_no_more - called after its last one, with the value that the first returned
 */
unsigned int inherit_from_caller(const struct kernel_job *job);
void inherit_no_more(const struct kernel_job *job, unsigned int scope);

#endif /* KTASK_KERNEL_INHERIT_H */
