/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts of the benchmark that main.c puts in a row.  Each adds its rows
 * and figures to the results; 0 or an errno.
 */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include "cases.h"
#include "rows.h"

/* rounds.c: all peers on one case, alternating. */
int rounds_run(struct results *results, const struct bench_case *c);

/* latency.c: empty jobs, jobs too small to split. */
int latency_run(struct results *results);

/* qemu.c: a virtual machine's start; adds nothing where there is no QEMU. */
int qemu_run(struct results *results, const char *shim);

/* idle.c: what a pool of idle helpers keeps in memory; program is its path. */
int idle_run(struct results *results, const char *program);

#endif /* BENCH_ROUNDS_H */
