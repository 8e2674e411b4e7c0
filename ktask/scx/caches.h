/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which CPUs share a last-level cache, as sysfs tells it.
 *
 * Caches are numbered in the order of their first CPUs, so that caches of one node have
 * neighbouring numbers.  A CPU of which nothing is known, because it is offline, belongs
 * to the first cache.
 */
#ifndef KTASK_SCX_CACHES_H
#define KTASK_SCX_CACHES_H

#include "scx_shared.h"

struct caches {
	unsigned nr_cpus;
	unsigned nr;
	/* The CPUs of a cache are cpus[first[cache]] to cpus[first[cache + 1] - 1]. */
	unsigned first[SCX_CACHES_MAX + 1];
	unsigned cpus[SCX_CPUS_MAX];
	unsigned of_cpu[SCX_CPUS_MAX];
};

/*
 * caches_read - find out about CPUs [0, @nr_cpus)
 *
 * Return: 0, or -E2BIG if this machine has more CPUs or caches than fit
 */
int caches_read(struct caches *caches, unsigned nr_cpus);

#endif /* KTASK_SCX_CACHES_H */
