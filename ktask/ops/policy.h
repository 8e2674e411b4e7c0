/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The caller's NUMA memory policy, followed by the helpers.
 *
 * set_mempolicy(2) holds for one thread.  A page that a helper makes must lie where it
 * would lie if the caller had made it.  So a helper takes over the policy of the job
 * that it works on.  Policies of mappings (mbind) hold for all threads anyway.
 *
 * Behaves badly: each thread interleaves by itself.  So pages are spread as evenly as
 * before, but not page for page on the same nodes.
 */
#ifndef OPS_POLICY_H
#define OPS_POLICY_H

#include <stdbool.h>

#define POLICY_NODES_MAX 1024
#define POLICY_WORDS (POLICY_NODES_MAX / 8 / sizeof(unsigned long))

struct policy {
	bool known; /* else helpers keep what they have */
	int mode;
	unsigned long nodes[POLICY_WORDS];
};

/** policy_read - the policy of the calling thread */
void policy_read(struct policy *policy);

/**
 * policy_follow - give the calling thread @policy, unless it has it
 *
 * For helpers only.  If it fails, the thread keeps its policy.  A helper can set all that
 * the caller could set.
 */
void policy_follow(const struct policy *policy);

/**
 * policy_return - after policy_follow(): give the thread its former policy
 *
 * The thread's next job may be another caller's, and its pages must not lie where this
 * caller wants them.
 */
void policy_return(void);

#endif /* OPS_POLICY_H */
