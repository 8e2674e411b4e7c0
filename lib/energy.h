/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Energy: does this machine rather save energy than time?
 *
 * Then no helpers are added: they finish sooner, but wake CPUs that would sleep.
 * Owns what the system says of itself; the administrator's knob is config.h's
 * and goes first.
 *
 * Behaves badly where CPUs are governed one by one: a few of them, spread over
 * the machine, stand for all.
 */
#ifndef KTASK_LIB_ENERGY_H
#define KTASK_LIB_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENERGY_NO_LIMIT 65536u
#define ENERGY_REFRESH_NS 1000000000

/*
 * energy_saving - does the system under @root save energy?
 * @why: what told so, for people; @size bytes
 */
bool energy_saving(const char *root, char *why, size_t size);

/* energy_threads - 1 where no helper shall run, else ENERGY_NO_LIMIT; @now_ns 0:
 * from the last refresh */
unsigned energy_threads(uint64_t now_ns);

/* energy_explain - the same, read now, and the reason */
unsigned energy_explain(char *why, size_t size);

#endif /* KTASK_LIB_ENERGY_H */
