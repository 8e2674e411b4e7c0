/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Instructions of user space, counted where a machine has no counter of its own.
 */
#ifndef BENCH_SINGLE_STEPS_H
#define BENCH_SINGLE_STEPS_H

#include <stdint.h>

/*
 * single_steps - instructions that a child needs between two stops
 * @run: called in the child; raises SIGSTOP before and after what shall be counted
 *
 * What raising it takes is counted too: subtract a run that does nothing in between.
 *
 * Return: 0 if processes may not be traced.
 */
uint64_t single_steps(void (*run)(void *arg), void *arg);

#endif /* BENCH_SINGLE_STEPS_H */
