/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Does one of the CPUs that a thread may use idle, where it may not use all?  How many
 * threads run is known only of the whole machine (util/running_threads.h): they may all be on
 * other CPUs.  How long each CPU has idled is in /proc/stat.  So two readings are
 * compared; that file takes 20 times as long to read as the other one.
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
 * idle_cpus_read - how long the CPUs in @cpus have idled, all together, since boot
 *
 * Return: false where it is not told of each of them.
 */
bool idle_cpus_read(const struct kt_cpus *cpus, uint64_t *idle_ns);

/**
 * idle_cpus_note - compare a reading with the last one
 * @own_ns: CPU time of those who ask: without them as much would be idle
 *
 * Return: whether half of a CPU or more was idle in between.
 */
bool idle_cpus_note(struct idle_cpus *last, uint64_t now_ns, uint64_t idle_ns,
		    uint64_t own_ns);

/**
 * idle_cpus_remain - whether one of the CPUs of the calling thread idles
 *
 * Return: false also if it may use all of the machine, for then the number of threads that
 * run tells more, and if nobody knows.
 */
bool idle_cpus_remain(struct idle_cpus *last, uint64_t now_ns, uint64_t own_ns);

#endif /* KTASK_UTIL_IDLE_CPUS_H */
