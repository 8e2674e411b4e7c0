// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU quota of control groups, the least up the tree.
 *
 * Of a module the CPU time of kernel threads is nobody's, so a process whose quota is one
 * CPU could have the machine's by way of them: it gets no more threads than its quota is
 * worth.  Where it is charged (compat_charge_group()), or helpers are the process's own
 * threads, they would run the quota dry instead, and these stand still with what they hold.
 *
 * The scheduler shows its quota to nobody but the readers of a group's files.  The
 * function behind a file of the first version is called here: it takes the group
 * itself, of whichever version that is.  A kernel without that file sets no cap.
 *
 * Behaves badly where others of the group use the quota up: they are not looked
 * at.
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

/* Under RCU, or while the group is held. */
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
