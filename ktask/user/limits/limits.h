/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Limits: how many threads policy allows a job, in all and at this moment.
 */
#ifndef KTASK_USER_LIMITS_H
#define KTASK_USER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/cpus.h"

/*
 * limits_threads - what a job that starts now may ever have, at least 1
 * @cpus: set to the calling thread's affinity
 *
 * By what was last found; reads anew only if that limits the threads.
 */
unsigned limits_threads(struct kt_cpus *cpus);

/* limits_refresh - set the caps anew if CPUs or nodes went or came */
void limits_refresh(uint64_t now_ns);

/*
 * limits_now - the least of what changes while a job runs, at least 1
 *
 * The capacity of its control groups, and energy.  @now_ns 0: as last found.
 */
unsigned limits_now(uint64_t now_ns);

/*
 * limits_idle_only - must helpers be kept to idle CPUs?
 *
 * They must if they cannot be raised again, and so run at the normal priority.
 */
bool limits_idle_only(void);

/* limits_running - threads of the machine that run or could; 0: unreadable */
unsigned limits_running(void);

/*
 * limits_has_idle_cpu - is there a CPU for each thread that runs, the calling one
 * included?
 *
 * Costs 3 us.  Unknown counts as yes.
 */
bool limits_has_idle_cpu(void);

/*
 * limits_idle_threads - threads for which CPUs are idle, and those of this job
 * @own: of this job that run now
 */
unsigned limits_idle_threads(unsigned own);

#endif /* KTASK_USER_LIMITS_H */
