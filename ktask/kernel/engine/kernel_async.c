// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs that go on while their caller does something else.
 *
 * A struct ktask_job is a job in allocated memory.  The thread that waits for it becomes
 * its caller: it works on the job, lends its priority, undoes and fills the result.
 *
 * If no helper could be submitted at the start, because all were busy or no CPU was idle, a
 * delayed_work tries again in place of the caller until there is one.  It respects the
 * CPUs and the quota of the process that started the job.
 *
 * Locking: there is no lock; kernel/engine/kernel_job.h says who writes what.
 * ktask_wait() ends the delayed_work, and waits for it, before its thread becomes the
 * caller, so there is one caller at a time.  Helpers may be in chunks meanwhile, so what
 * they read is written by WRITE_ONCE().  ktask_cancel() may be called at any time before
 * ktask_wait(), and writes only the error of the job, by one compare-and-swap.
 */
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "kernel/engine/inherit.h"
#include "kernel/engine/kernel_job.h"
#include "kernel/engine/kernel_quota.h"

struct ktask_job {
	struct kernel_job job;
	struct ktask_ctl ctl;
	struct cpumask cpus; /* of the thread that started it */
	/* Submits items until the job has helpers, or a caller. */
	struct delayed_work again;
	struct kt_range ranges[];
};

static void submit_again(struct work_struct *work)
{
	struct ktask_job *job =
		container_of(to_delayed_work(work), struct ktask_job, again);

	/* There are too many jobs: this one has no entry, so no share. */
	if (job->job.share_entry < 0)
		return;
	if (!kt_context_resubmit(&job->job.ctx, kt_now_ns()))
		pool_later(&job->again);
}

/**
 * ktask_start_numa - ktask_run_numa(), begun as ktask_start() does
 * @job: set to the job; on failure to NULL
 * @nodes: the ranges
 * @nr_nodes: how many
 * @ctl: how to do it
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int ktask_start_numa(struct ktask_job **job, const struct ktask_node *nodes,
		     size_t nr_nodes, const struct ktask_ctl *ctl)
{
	int error = job_check(ctl, nodes, nr_nodes);
	struct ktask_job *new;
	const struct kt_context *ctx;

	*job = NULL;
	if (!error && (ctl->flags & (KTASK_CALLER_MM | KTASK_CALLER_PROCESS)))
		error = -EINVAL;
	if (error)
		return error;
	new = kvzalloc(struct_size(new, ranges, nr_nodes), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	new->ctl = *ctl;
	error = job_init(&new->job, new->ranges, nodes, nr_nodes, &new->ctl);
	if (error) {
		kvfree(new);
		return error;
	}
	/* The thread that starts the job may end before anybody waits for it. */
	new->job.task = NULL;
	new->job.client = NULL;
	cpumask_copy(&new->cpus, current->cpus_ptr);
	new->job.cpus = &new->cpus;
	new->job.group = quota_group_get();
	INIT_DELAYED_WORK(&new->again, submit_again);
	/* Only the starting thread may use reserves of memory, and only for a time. */
	new->job.scope &= ~PF_MEMALLOC;
	job_begin(&new->job, true);
	ctx = &new->job.ctx;
	if (ctx->helpers.nr && ctx->job.threads < ctx->wanted)
		pool_later(&new->again);
	*job = new;
	return 0;
}
EXPORT_SYMBOL_GPL(ktask_start_numa);

/**
 * ktask_start - begin a job and return at once
 * @job: set to the job; on failure to NULL
 * @start: first position
 * @task_size: units of work
 * @ctl: how to do it; copied
 *
 * Helpers begin as soon as some are available.  The thread that calls ktask_wait() joins
 * them, and does all of the work if there were none.  What @ctl points to must live until
 * then.  Each started job must be waited for once, and before the module whose functions it
 * calls is unloaded.
 *
 * Return: 0; -EINVAL as ktask_run(); -ENOMEM.
 */
int ktask_start(struct ktask_job **job, void *start, size_t task_size,
		const struct ktask_ctl *ctl)
{
	struct ktask_node any = { start, task_size, NUMA_NO_NODE };

	return ktask_start_numa(job, &any, 1, ctl);
}
EXPORT_SYMBOL_GPL(ktask_start);

/**
 * ktask_wait - work on a started job until it ends, and free it
 * @job: from ktask_start(), or NULL
 *
 * Return: what ktask_run() would have returned; -ECANCELED after
 * ktask_cancel(), unless the job had ended by then; -EINVAL for NULL.
 */
int ktask_wait(struct ktask_job *job)
{
	struct kernel_job *outer = job_current();
	int error;

	if (!job)
		return -EINVAL;
	cancel_delayed_work_sync(&job->again);
	kt_assert(!job->job.task);
	job->job.cpus = NULL;
	quota_group_put(job->job.group);
	/* The waiting thread may hold locks.  Helpers that are in a chunk keep the scope with
	 * which they began it. */
	WRITE_ONCE(job->job.scope, job->job.scope | inherit_scope());
	WRITE_ONCE(job->job.task, current);
	WRITE_ONCE(job->job.client, ktask_task());
	kt_store(&job->job.ctx.detached, false);
	if (outer)
		WRITE_ONCE(
			job->job.nesting,
			max(job->job.nesting, READ_ONCE(outer->nesting) + 1));
	job_work(&job->job);
	error = job_end(&job->job);
	kvfree(job);
	return error;
}
EXPORT_SYMBOL_GPL(ktask_wait);

/**
 * ktask_cancel - let a started job claim no more chunks
 * @job: not yet waited for, or NULL
 *
 * Returns at once; the job must still be waited for, which undoes it.  May be
 * called from any context, also from inside a chunk.
 */
void ktask_cancel(struct ktask_job *job)
{
	if (job && !kt_job_idle(&job->job.ctx.job))
		kt_job_stop(&job->job.ctx.job, -ECANCELED);
}
EXPORT_SYMBOL_GPL(ktask_cancel);
