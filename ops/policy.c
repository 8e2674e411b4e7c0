/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory policies by system call (libnuma would be a dependency for two of
 * them): see policy.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy.h"

/* What this thread, a helper, was given last. */
static _Thread_local struct policy followed;

void policy_read(struct policy *policy)
{
	int saved_errno = errno;

	memset(policy, 0, sizeof(*policy));
	/* The kernel wants room for one node more than it uses. */
	policy->known = !syscall(SYS_get_mempolicy, &policy->mode,
				 policy->nodes, POLICY_NODES_MAX + 1, NULL, 0);
	errno = saved_errno;
}

void policy_follow(const struct policy *policy)
{
	int saved_errno = errno;

	if (!policy->known || !memcmp(&followed, policy, sizeof(followed)))
		return;
	if (!syscall(SYS_set_mempolicy, policy->mode, policy->nodes,
		     POLICY_NODES_MAX + 1))
		followed = *policy;
	errno = saved_errno;
}
