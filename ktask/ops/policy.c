/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory policies by system call (libnuma would be a dependency for two of
 * them): see policy.h.
 *
 * Locking: none.  What is static here belongs to each thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy.h"

/* What this thread, a helper, has by itself, and whether it has another now. */
static _Thread_local struct policy own_policy;
static _Thread_local bool follows_other;

void policy_read(struct policy *policy)
{
	int saved_errno = errno;

	memset(policy, 0, sizeof(*policy));
	/* The kernel wants room for one node more than it uses. */
	policy->known = !syscall(SYS_get_mempolicy, &policy->mode,
				 policy->nodes, POLICY_NODES_MAX + 1, NULL, 0);
	errno = saved_errno;
}

static bool set_policy(const struct policy *policy)
{
	int saved_errno = errno;
	bool done = !syscall(SYS_set_mempolicy, policy->mode, policy->nodes,
			     POLICY_NODES_MAX + 1);

	errno = saved_errno;
	return done;
}

void policy_follow(const struct policy *policy)
{
	if (!policy->known)
		return;
	if (!own_policy.known)
		policy_read(&own_policy);
	if (own_policy.known && memcmp(&own_policy, policy, sizeof(own_policy)))
		follows_other = set_policy(policy);
}

void policy_return(void)
{
	if (follows_other)
		set_policy(&own_policy);
	follows_other = false;
}
