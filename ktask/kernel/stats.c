// SPDX-License-Identifier: GPL-2.0-only
/*
 * Statistics: a counter for each CPU, which are added up when the file is read, for the
 * machine and for each node.
 *
 * Without debugfs nothing is shown; that is no error.
 *
 * Locking: there is no lock.  A counter is written on its CPU by this_cpu_add() and read by
 * any thread.  A sum does not show one moment.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/topology.h>

#include "kernel/engine/kernel_pool.h"
#include "kernel/engine/kernel_shares.h"
#include "kernel/stats.h"

DEFINE_PER_CPU(u64[NR_KTASK_STATS], stats_counters);
static struct dentry *stats_dir;

static const char *const stat_names[NR_KTASK_STATS] = {
	[STAT_JOBS] = "jobs",
	[STAT_ALONE] = "jobs_alone",
	[STAT_FAILED] = "jobs_failed",
	[STAT_CHUNKS] = "chunks",
	[STAT_REMOTE] = "chunks_remote",
	[STAT_UNITS] = "units",
	[STAT_HELPED] = "helpers_worked",
	[STAT_LENT] = "helpers_lent",
	[STAT_NONE_IDLE] = "no_idle_cpu",
	[STAT_HOST_LACKS] = "host_lacks_cpus",
	[STAT_WALL_NS] = "wall_ns",
};

static u64 sum_of(enum ktask_stat stat, int nid)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
	{
		if (nid == NUMA_NO_NODE || nid == cpu_to_node(cpu))
			sum += READ_ONCE(per_cpu(stats_counters[stat], cpu));
	}
	return sum;
}

static void show_counters(struct seq_file *m, const char *prefix, int nid,
			  const struct kt_cap *cap)
{
	unsigned int stat;

	for (stat = 0; stat < NR_KTASK_STATS; stat++)
		seq_printf(m, "%s%s %llu\n", prefix, stat_names[stat],
			   sum_of(stat, nid));
	seq_printf(m, "%shelpers_at_work %u\n", prefix, kt_load(&cap->used));
	seq_printf(m, "%shelpers_limit %u\n", prefix, kt_load(&cap->limit));
}

static int stats_show(struct seq_file *m, void *unused)
{
	char prefix[20];
	int nid;

	show_counters(m, "", NUMA_NO_NODE, pool_machine());
	seq_printf(m, "helpers %u\n", pool_helpers());
	for_each_online_node(nid)
	{
		snprintf(prefix, sizeof(prefix), "node%d_", nid);
		show_counters(m, prefix, nid, pool_node(nid));
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int jobs_show(struct seq_file *m, void *unused)
{
	shares_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(jobs);

void stats_init(void)
{
	stats_dir = debugfs_create_dir("ktask", NULL);
	debugfs_create_file("stats", 0444, stats_dir, NULL, &stats_fops);
	debugfs_create_file("jobs", 0444, stats_dir, NULL, &jobs_fops);
}

void stats_exit(void)
{
	debugfs_remove(stats_dir);
}
