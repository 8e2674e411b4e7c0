/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The machine, as far as one must know it to judge a figure.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <jansson.h>

json_t *machine_json(void);

/* One line for people. */
void machine_print(void);

#endif /* BENCH_MACHINE_H */
