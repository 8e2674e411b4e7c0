/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Energy: is this machine set to save energy rather than time?
 *
 * If it is, no helpers are added: they finish a job sooner, but wake CPUs that would
 * sleep.  Owns what the system says about itself.  The administrator's setting is in
 * user/limits/config.h and has precedence.
 *
 * Behaves badly if the CPUs have different governors: only a few CPUs are read.
 */
#ifndef KTASK_USER_ENERGY_H
#define KTASK_USER_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENERGY_NO_LIMIT 65536u
#define ENERGY_REFRESH_NS 1000000000

/*
 * energy_saving - does the system under @root save energy?
 * @why: the reason, for people; @size bytes
 */
bool energy_saving(const char *root, char *why, size_t size);

/* energy_threads - 1 where no helper shall run, else ENERGY_NO_LIMIT; @now_ns 0:
 * from the last refresh */
unsigned energy_threads(uint64_t now_ns);

/* energy_explain - the same, read now, and the reason */
unsigned energy_explain(char *why, size_t size);

#endif /* KTASK_USER_ENERGY_H */
