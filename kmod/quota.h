/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quota: how many threads the CPU quota of the caller's control group is worth.
 */
#ifndef KTASK_KMOD_QUOTA_H
#define KTASK_KMOD_QUOTA_H

/*
 * quota_threads - threads that the calling process's groups allow, at least 1
 *
 * UINT_MAX where there is no quota, and for threads of the kernel.
 *
 * Context: any that may read; takes no lock.
 */
unsigned int quota_threads(void);

#endif /* KTASK_KMOD_QUOTA_H */
