/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Is there memory for what served processes may still touch?  Arithmetic only.
 *
 *	claim	bytes that a process may still touch, in mappings that it touches in order
 *
 * A claim costs nothing: any process can map a terabyte and touch a megabyte of it.  So
 * the whole claim of a process counts only for that process.  The claims of others count
 * for it as at most an eighth of the available memory each, and half of it together.
 *
 * Behaves badly if processes that touch more than that all stop at the last 3 % of the
 * memory: then the pages that were made ahead of them are missing.
 */
#ifndef DAEMON_MEMORY_CLAIMS_H
#define DAEMON_MEMORY_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

/* This much must be left after the programs have touched all that counts. */
#define CLAIM_RESERVE_BYTES ((uint64_t)32 << 20)
#define CLAIM_OTHER_PART 8
#define CLAIM_OTHERS_PART 2

struct memory_claims {
	uint64_t available; /* bytes that the machine has */
	uint64_t own;
	uint64_t others; /* as far as they count */
};

static inline void claims_add_other(struct memory_claims *claims,
				    uint64_t bytes)
{
	uint64_t most = claims->available / CLAIM_OTHER_PART;

	claims->others += bytes < most ? bytes : most;
	most = claims->available / CLAIM_OTHERS_PART;
	if (claims->others > most)
		claims->others = most;
}

static inline bool claims_are_met(const struct memory_claims *claims)
{
	return claims->available >=
	       claims->own + claims->others + CLAIM_RESERVE_BYTES;
}

#endif /* DAEMON_MEMORY_CLAIMS_H */
