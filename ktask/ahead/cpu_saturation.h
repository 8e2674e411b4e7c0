/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Does a program keep all CPUs busy by itself?  Then a helper could only take the CPU
 * of a thread that would have made the page itself.
 *
 * The number of threads that run at one moment does not tell: a thread that waits for a
 * lock for a microsecond does not run, but frees no CPU for a helper.  So the CPU time
 * of the program is compared with the time that passed.
 *
 * Knows no clock.  Not thread-safe: the watcher's.
 */
#ifndef AHEAD_CPU_SATURATION_H
#define AHEAD_CPU_SATURATION_H

#include <stdbool.h>
#include <stdint.h>

/* The least time between two readings that are compared.  The kernel counts what a
 * thread on another CPU uses at each tick, of 1 to 10 ms. */
#define SATURATION_NS 25000000
/* CPU time that a program on all CPUs may lack: half of a CPU, or an eighth of all CPUs if
 * that is more.  The watcher or the kernel has used it, or threads have waited. */
#define LACK_OF_ONE_CPU 2
#define LACK_OF_ALL_CPUS 8

struct cpu_saturation {
	uint64_t then_ns, used_ns;
	bool full;
};

/* CPU time from which on all CPUs count as used for @ns. */
static inline uint64_t cpu_saturation_ns(uint64_t ns, unsigned nr_cpus)
{
	uint64_t lack_ns = ns / LACK_OF_ONE_CPU;

	if (lack_ns < ns * nr_cpus / LACK_OF_ALL_CPUS)
		lack_ns = ns * nr_cpus / LACK_OF_ALL_CPUS;
	return ns * nr_cpus - lack_ns;
}

/**
 * cpu_saturation_note - compare with the last reading
 * @used_ns: CPU time of all threads of the program, without helpers.  It may go back,
 *           because the time of helpers is known, and subtracted, only later
 *
 * Return: whether the program had all CPUs since then.
 */
static inline bool cpu_saturation_note(struct cpu_saturation *saturation,
				       uint64_t now_ns, uint64_t used_ns,
				       unsigned nr_cpus)
{
	uint64_t passed_ns = now_ns - saturation->then_ns;

	if (saturation->then_ns && passed_ns < SATURATION_NS)
		return saturation->full;
	saturation->full = saturation->then_ns &&
			   used_ns > saturation->used_ns &&
			   used_ns - saturation->used_ns >=
				   cpu_saturation_ns(passed_ns, nr_cpus);
	saturation->then_ns = now_ns;
	saturation->used_ns = used_ns;
	return saturation->full;
}

#endif /* AHEAD_CPU_SATURATION_H */
