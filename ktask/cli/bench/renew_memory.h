/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes sure that free memory is present.  The host of a virtual machine may take back
 * memory that the guest has freed.  Touching it then costs 5 to 20 times as much as
 * clearing it, which the first measured run would pay.  So memory is touched and freed
 * right before each run, without being timed.
 */
#ifndef KTASK_CLI_RENEW_MEMORY_H
#define KTASK_CLI_RENEW_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/** What touching free memory cost, over many runs; seconds are CPU time. */
struct renewal {
	unsigned runs; /* calls of renew_free_memory() */
	unsigned slow_runs; /* in which the host had to give memory */
	double least_s_per_byte;
	double most_s_per_byte;
};

/** renewal_factor - the dearest touch / the cheapest one; 1 before any */
double renewal_factor(const struct renewal *renewal);

/**
 * renewal_is_slow - does a cost show that memory was missing?
 * @least_seconds: CPU time of the cheapest run of that size
 * @seconds: of this one
 */
bool renewal_is_slow(double least_seconds, double seconds);

/**
 * renew_free_memory - touch and free @bytes until that is cheap
 *
 * At most three times.  An error only makes the run after it noisier.
 */
void renew_free_memory(struct renewal *renewal, size_t bytes);

#endif /* KTASK_CLI_RENEW_MEMORY_H */
