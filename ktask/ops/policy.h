/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The caller's NUMA memory policy, followed by the helpers.
 *
 * set_mempolicy(2) holds for one thread.  A page that a helper makes must lie
 * where it would lie had the caller made it, so a helper takes over the policy
 * of the job that it works on.  Policies of mappings (mbind) need nothing of
 * this.
 *
 * Where it behaves badly: interleaving goes round per thread, so pages are
 * spread as evenly as before but not page for page the same.
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
 * For helpers only.  Failure leaves it as it is; what the caller could set, a
 * helper of its process can set.
 */
void policy_follow(const struct policy *policy);

/**
 * policy_return - behind policy_follow(): what the thread had before
 *
 * A thread that does the next job, perhaps of another caller and of another
 * kind, must not make its pages where this caller wants them.
 */
void policy_return(void);

#endif /* OPS_POLICY_H */
