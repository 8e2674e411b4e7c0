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
 * Return: UINT_MAX if there is no quota, and for kernel threads.
 *
 * Context: any; takes no lock.
 */
unsigned int quota_threads(void);

/*
 * The same for a thread that works in place of the process:
 * quota_group_get - a reference to the process's group; NULL: no quota
 * quota_threads_of - threads that the group and those above it allow now
 */
struct cgroup_subsys_state *quota_group_get(void);
void quota_group_put(struct cgroup_subsys_state *group);
unsigned int quota_threads_of(struct cgroup_subsys_state *group);

#endif /* KTASK_KERNEL_QUOTA_H */
