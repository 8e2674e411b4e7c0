/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Statistics since the module was loaded, in debugfs: ktask/stats, one
 * "name value" a line; then once more for each node, "node0_name value".  What a
 * thread did counts for the node of the CPU that it ended on, a job for its
 * caller's.
 */
#ifndef KTASK_KERNEL_STATS_H
#define KTASK_KERNEL_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

enum ktask_stat {
	STAT_JOBS, /* that could have had helpers */
	STAT_ALONE, /* that could not: too small, or nobody allowed */
	STAT_FAILED,
	STAT_CHUNKS,
	STAT_REMOTE, /* chunks of a node done by a thread of another */
	STAT_UNITS,
	STAT_HELPED, /* helpers that did a chunk, added up over jobs */
	STAT_LENT,
	STAT_NONE_IDLE, /* a helper was wanted and none of its CPUs idled */
	STAT_HOST_LACKS, /* a job found that the host lacks CPUs for helpers */
	STAT_WALL_NS, /* of jobs that are counted in jobs */
	NR_KTASK_STATS
};

DECLARE_PER_CPU(u64[NR_KTASK_STATS], stats_counters);

static inline void stats_add(enum ktask_stat stat, u64 value)
{
	this_cpu_add(stats_counters[stat], value);
}

void stats_init(void);
void stats_exit(void);

#endif /* KTASK_KERNEL_STATS_H */
