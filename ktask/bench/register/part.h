/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts of bench-register, and what they share.
 */
#ifndef BENCH_REGISTER_PART_H
#define BENCH_REGISTER_PART_H

#include <stddef.h>

#include "bench/common/median_row.h"

#define MIB ((size_t)1 << 20)
#define MAX_ROUNDS 101

struct plan {
	size_t len;
	unsigned rounds;
};

/* Ends the program with what failed. */
void check_that(int done, const char *what);

/* backing_map_absent(), or the end of the program. */
char *map_absent(size_t len);

/* Fixed buffers of an io_uring, plain and by ktask_register(). */
void bench_uring(const struct plan *plan);

/* ktask_uffd_fill() by one thread and by two, and what faults wait for. */
void bench_uffd(const struct plan *plan);

#endif /* BENCH_REGISTER_PART_H */
