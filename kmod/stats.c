// SPDX-License-Identifier: GPL-2.0-only
/*
 * Statistics: a counter for each CPU, added up when somebody looks.
 *
 * Where there is no debugfs nothing is shown; that is no error.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>

#include "kmod/demand.h"
#include "kmod/pool.h"
#include "kmod/stats.h"

static DEFINE_PER_CPU(u64[NR_KTASK_STATS], counters);
static struct dentry *dir;

static const char *const names[NR_KTASK_STATS] = {
	[STAT_JOBS] = "jobs",
	[STAT_ALONE] = "jobs_alone",
	[STAT_FAILED] = "jobs_failed",
	[STAT_CHUNKS] = "chunks",
	[STAT_REMOTE] = "chunks_remote",
	[STAT_UNITS] = "units",
	[STAT_SEATED] = "helpers_seated",
	[STAT_LENT] = "helpers_lent",
	[STAT_WALL_NS] = "wall_ns",
};

void stats_add(enum ktask_stat stat, u64 value)
{
	this_cpu_add(counters[stat], value);
}

static int stats_show(struct seq_file *m, void *unused)
{
	unsigned int stat;
	int cpu;

	for (stat = 0; stat < NR_KTASK_STATS; stat++) {
		u64 sum = 0;

		for_each_possible_cpu(cpu) sum +=
			READ_ONCE(per_cpu(counters[stat], cpu));
		seq_printf(m, "%s %llu\n", names[stat], sum);
	}
	seq_printf(m, "helpers %u\n", pool_helpers());
	seq_printf(m, "helpers_at_work %u\n", kt_load(&pool_machine()->used));
	seq_printf(m, "helpers_limit %u\n", kt_load(&pool_machine()->limit));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int jobs_show(struct seq_file *m, void *unused)
{
	demand_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(jobs);

void stats_init(void)
{
	dir = debugfs_create_dir("ktask", NULL);
	debugfs_create_file("stats", 0444, dir, NULL, &stats_fops);
	debugfs_create_file("jobs", 0444, dir, NULL, &jobs_fops);
}

void stats_exit(void)
{
	debugfs_remove(dir);
}
