// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU quota of a control group: the smallest of the group and of those above it.
 *
 * A job gets no more threads than that quota is worth.  There are two reasons.  No group
 * is charged for kernel threads that serve a module, so a process with a quota of one CPU
 * could use the whole machine through them.  Where the group is charged
 * (compat_charge_group()), or helpers are threads of the process, more helpers would only
 * use up the quota sooner.  The group's threads then stand still with the locks they hold.
 *
 * The scheduler shows a quota only to readers of the group's files.  So this calls the
 * function behind the file of version 1, which takes a group of either version.  On a
 * kernel without that file no quota is known.
 *
 * Behaves badly where other threads of the group use up the quota: nobody sees that here.
 */
#include <linux/cgroup.h>
#include <linux/limits.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "core/quota.h"
#include "kernel/engine/kernel_quota.h"

#if IS_ENABLED(CONFIG_CFS_BANDWIDTH) && IS_ENABLED(CONFIG_CGROUP_SCHED)
static struct cftype *find_file(struct cgroup_subsys_state *css,
				const char *name)
{
	struct cftype *file = css->ss->legacy_cftypes;

	for (; file && file->name[0]; file++)
		if (!strcmp(file->name, name))
			return file;
	return NULL;
}

static unsigned int threads_of(struct cgroup_subsys_state *css,
			       struct cftype *quota, struct cftype *period)
{
	s64 us = quota->read_s64(css, quota);
	struct kt_quota capacity = {};

	if (us < 0)
		return UINT_MAX;
	capacity.milli = kt_quota_milli(us, period->read_u64(css, period));
	return kt_quota_most(&capacity);
}

/* Called under RCU, or with a reference to the group. */
static unsigned int threads_up(struct cgroup_subsys_state *css)
{
	struct cftype *quota, *period;
	unsigned int threads = UINT_MAX;

	/* The root has no quota. */
	if (!css->parent)
		return UINT_MAX;
	quota = find_file(css, "cfs_quota_us");
	period = find_file(css, "cfs_period_us");
	if (!quota || !quota->read_s64 || !period || !period->read_u64)
		return UINT_MAX;
	for (; css->parent; css = css->parent)
		threads = min(threads, threads_of(css, quota, period));
	return threads;
}

unsigned int quota_threads(void)
{
	unsigned int threads;

	if (current->flags & PF_KTHREAD)
		return UINT_MAX;
	rcu_read_lock();
	threads = threads_up(task_css(current, cpu_cgrp_id));
	rcu_read_unlock();
	return threads;
}

struct cgroup_subsys_state *quota_group_get(void)
{
	if (current->flags & PF_KTHREAD)
		return NULL;
	return task_get_css(current, cpu_cgrp_id);
}

void quota_group_put(struct cgroup_subsys_state *group)
{
	if (group)
		css_put(group);
}

unsigned int quota_threads_of(struct cgroup_subsys_state *group)
{
	return group ? threads_up(group) : UINT_MAX;
}
#else
unsigned int quota_threads(void)
{
	return UINT_MAX;
}

struct cgroup_subsys_state *quota_group_get(void)
{
	return NULL;
}

void quota_group_put(struct cgroup_subsys_state *group)
{
}

unsigned int quota_threads_of(struct cgroup_subsys_state *group)
{
	return UINT_MAX;
}
#endif
