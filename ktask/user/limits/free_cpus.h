/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CPUs that others leave to helpers, if the process may not use all CPUs of the machine.
 *
 * How many threads run is known only for the whole machine, and they may all be on other
 * CPUs.  So two readings of /proc/stat are compared, 100 ms to a second apart.  It says how
 * long each CPU has idled (util/idle_cpus.h).
 *
 * Behaves badly if threads of the process may use different CPUs and begin jobs by turns:
 * then nothing is known.  So it is if chunks that helpers of several nodes do begin jobs, and
 * what helpers of all nodes used counts as idle on the CPUs of one.
 */
#ifndef KTASK_USER_FREE_CPUS_H
#define KTASK_USER_FREE_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/cpus.h"

#define FREE_CPUS_UNKNOWN (-1)

/*
 * free_cpus_part - whether the calling thread may use only a part of the CPUs
 * @cpus: set to these
 *
 * Return: how many; 0 if it may use all, or if that is not known.
 */
unsigned free_cpus_part(struct kt_cpus *cpus);

/*
 * free_cpus - CPUs of @cpus that were free for helpers lately
 * @cpus: those of a thread that begins jobs.  Not a part to which a helper is bound, because
 * the time of all helpers of the process counts as idle.
 * @beside_caller: leave out the CPU that a caller uses who works as well
 *
 * Takes a reading if the last one was 100 ms ago or more, which costs some 60 us.
 *
 * Return: FREE_CPUS_UNKNOWN before the second reading.
 */
int free_cpus(const struct kt_cpus *cpus, uint64_t now_ns, bool beside_caller);

#endif /* KTASK_USER_FREE_CPUS_H */
