/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sets of CPUs, and the affinity of threads, for up to KT_CPUS_MAX CPUs.
 *
 * On larger machines affinity reads fail and everything counts as unbound.
 */
#ifndef KTASK_UTIL_CPUS_H
#define KTASK_UTIL_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define KT_CPUS_MAX 4096

struct kt_cpus {
	uint64_t words[KT_CPUS_MAX / 64];
};

static inline void cpus_set(struct kt_cpus *cpus, unsigned cpu)
{
	if (cpu < KT_CPUS_MAX)
		cpus->words[cpu / 64] |= 1ull << (cpu % 64);
}

static inline void cpus_clear(struct kt_cpus *cpus, unsigned cpu)
{
	if (cpu < KT_CPUS_MAX)
		cpus->words[cpu / 64] &= ~(1ull << (cpu % 64));
}

static inline unsigned cpus_count(const struct kt_cpus *cpus)
{
	unsigned nr = 0;

	for (size_t i = 0; i < KT_CPUS_MAX / 64; i++)
		/* Nearly all are 0, and counting takes a call on old CPUs. */
		if (cpus->words[i])
			nr += (unsigned)__builtin_popcountll(cpus->words[i]);
	return nr;
}

static inline bool cpus_equal(const struct kt_cpus *a, const struct kt_cpus *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* @to = @to & @with; false, and @to unchanged, if that would be empty */
static inline bool cpus_narrow(struct kt_cpus *to, const struct kt_cpus *with)
{
	struct kt_cpus both;
	uint64_t any = 0;

	for (size_t i = 0; i < KT_CPUS_MAX / 64; i++) {
		both.words[i] = to->words[i] & with->words[i];
		any |= both.words[i];
	}
	if (any)
		*to = both;
	return any;
}

/* Affinity of the calling thread.  Return: false where it cannot be read. */
static inline bool cpus_get_affinity(struct kt_cpus *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	return syscall(SYS_sched_getaffinity, 0, sizeof(*cpus), cpus) > 0;
}

static inline bool cpus_set_affinity(pid_t tid, const struct kt_cpus *cpus)
{
	return !syscall(SYS_sched_setaffinity, tid, sizeof(*cpus), cpus);
}

#endif /* KTASK_UTIL_CPUS_H */
