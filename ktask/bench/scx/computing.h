/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Threads that compute on any CPU until they are stopped, and count what they did.
 */
#ifndef BENCH_COMPUTING_H
#define BENCH_COMPUTING_H

#include <stdbool.h>
#include <stdint.h>

#define COMPUTING_MAX 64

struct computing;

/* computing_start - @nr threads, of SCHED_IDLE if @is_low; NULL if that fails (errno) */
struct computing *computing_start(unsigned nr, bool is_low);

/* computing_done - steps of all of them so far */
uint64_t computing_done(const struct computing *computing);

/* computing_stop - end them; NULL does nothing */
void computing_stop(struct computing *computing);

/* compute_steps - the work of @nr steps, in the caller */
void compute_steps(unsigned nr);

#endif /* BENCH_COMPUTING_H */
