/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Limits: how many threads policy allows a job that starts now.
 */
#ifndef KTASK_LIB_LIMITS_H
#define KTASK_LIB_LIMITS_H

#include <stdbool.h>

#include "lib/cpus.h"

/*
 * limits_threads - the least of all limits, at least 1
 * @cpus: set to the calling thread's affinity
 */
unsigned limits_threads(struct kt_cpus *cpus);

/*
 * limits_idle_only - must helpers be kept to idle CPUs?
 *
 * Where helpers could not be raised again they run at the normal priority.
 */
bool limits_idle_only(void);

/*
 * limits_idle_threads - threads that idle CPUs have room for
 * @own: of this job that run now
 */
unsigned limits_idle_threads(unsigned own);

#endif /* KTASK_LIB_LIMITS_H */
