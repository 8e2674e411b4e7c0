/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Free memory that is really there.  The host of a virtual machine may take
 * memory back that the guest has freed; touching it then costs 5 to 20 times
 * as much as clearing it, and whoever is measured first pays.  Memory is
 * therefore touched and freed right before each run, untimed.
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
