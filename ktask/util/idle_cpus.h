/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Does one of the CPUs idle that a thread may use, if it may not use all?  The number of
 * running threads is known only for the whole machine (util/running_threads.h), and they
 * may all be on other CPUs.  So two readings of /proc/stat are compared, which says how
 * long each CPU has idled.  Reading it takes 20 times as long as the number.
 *
 * Not thread-safe.
 */
#ifndef KTASK_UTIL_IDLE_CPUS_H
#define KTASK_UTIL_IDLE_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/cpus.h"

/* The least time between two readings: the kernel tells time in units of 10 ms, of each
 * CPU.  Longer ago than the other nothing is known of the present. */
#define IDLE_CPUS_NS 100000000
#define IDLE_CPUS_MOST_NS 1000000000

struct idle_cpus {
	uint64_t then_ns, idle_ns, own_ns;
	bool idle;
};

/**
 * idle_cpus_read - how long the CPUs in @cpus have idled since boot, all together
 *
 * Return: false if the file does not have all of them.
 */
bool idle_cpus_read(const struct kt_cpus *cpus, uint64_t *idle_ns);

/**
 * idle_cpus_note - compare a reading with the last one
 * @own_ns: CPU time of the caller's own threads; without them it would have been idle time
 *
 * Return: whether half of a CPU or more was idle in between.
 */
bool idle_cpus_note(struct idle_cpus *last, uint64_t now_ns, uint64_t idle_ns,
		    uint64_t own_ns);

/**
 * idle_cpus_remain - whether one of the CPUs of the calling thread idles
 *
 * Return: false also if the thread may use all CPUs, because then the number of running
 * threads tells more, and if it is not known.
 */
bool idle_cpus_remain(struct idle_cpus *last, uint64_t now_ns, uint64_t own_ns);

#endif /* KTASK_UTIL_IDLE_CPUS_H */
