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
 * limits_threads - the most threads that a job which starts now may ever have, at least 1
 * @cpus: set to the calling thread's affinity
 *
 * Uses what was last found, and reads it anew only if it limits the threads.
 */
unsigned limits_threads(struct kt_cpus *cpus);

/* limits_refresh - set the caps anew if CPUs or nodes went or came */
void limits_refresh(uint64_t now_ns);

/*
 * limits_now - the least of those limits that change while a job runs, at least 1
 *
 * These are the capacity of its control groups, and energy.  @now_ns 0: as last found.
 */
unsigned limits_now(uint64_t now_ns);

/*
 * limits_idle_only - may helpers run on idle CPUs only?
 *
 * True if they could not be raised again.  Then they are not lowered either.
 */
bool limits_idle_only(void);

/* limits_running - threads of the machine that run or could; 0: unreadable */
unsigned limits_running(void);

/*
 * limits_has_idle_cpu - is there a CPU for each running thread, the calling one
 * included?
 * @cpus: those of the thread that began the job; a helper may be bound to a part of them
 *
 * If these are not all CPUs: did one of them idle lately?
 *
 * Costs 3 us.  If that cannot be read, the answer is yes.
 */
bool limits_has_idle_cpu(const struct kt_cpus *cpus);

/*
 * limits_idle_threads - how many threads the job may have: those that run plus one for
 * each idle CPU
 * @own: threads of this job that run now
 *
 * Helpers of this process that spin for the next job are no load: they are what it gets.
 */
unsigned limits_idle_threads(unsigned own);

#endif /* KTASK_USER_LIMITS_H */
