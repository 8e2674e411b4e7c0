/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quota: how many threads the CPU quota of the caller's control group is worth.
 */
#ifndef KTASK_KERNEL_QUOTA_H
#define KTASK_KERNEL_QUOTA_H

struct cgroup_subsys_state;

/*
 * quota_threads - threads that the calling process's groups allow, at least 1
 *
 * UINT_MAX where there is no quota, and for threads of the kernel.
 *
 * Context: any that may read; takes no lock.
 */
unsigned int quota_threads(void);

/*
 * The same for whoever stands in for a process:
 * quota_group_get - the process's group, held; NULL: no quota
 * quota_threads_of - threads that it and those above it allow now
 */
struct cgroup_subsys_state *quota_group_get(void);
void quota_group_put(struct cgroup_subsys_state *group);
unsigned int quota_threads_of(struct cgroup_subsys_state *group);

#endif /* KTASK_KERNEL_QUOTA_H */
