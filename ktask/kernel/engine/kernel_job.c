// SPDX-License-Identifier: GPL-2.0-only
/*
 * A job of the kernel from its control block to its result: what the host
 * prepares before the engine begins, and cleans up behind it.
 *
 * Its life in between is engine/context.c; what that asks for is kernel/engine/kernel_host.c.
 *
 * Locking: there is no lock; kernel/engine/kernel_job.h says who writes what.
 */
#include <linux/cred.h>
#include <linux/freezer.h>
#include <linux/kernel_stat.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "core/undo.h"
#include "engine/helpers.h"
#include "kernel/compat.h"
#include "kernel/engine/inherit.h"
#include "kernel/engine/kernel_helper.h"
#include "kernel/engine/kernel_job.h"
#include "kernel/engine/kernel_quota.h"
#include "kernel/stats.h"
#include "kernel/kernel_trace.h"

#define CHUNK_US 1000

/* Clients of a module hold few locks at which a stopped helper could hold others up. */
static bool watch_steal = IS_ENABLED(CONFIG_KTASK);
module_param(watch_steal, bool, 0644);
MODULE_PARM_DESC(watch_steal, "in a virtual machine: do without helpers while "
			      "the host lacks CPUs for them");

/* The caller looks up more often in the beginning, when helpers or their CPUs may
 * come free from another job. */
static const struct kt_pace caller_pace = {
	.tick_first_ns = 50000,
	.tick_ns = 500000,
	.refresh_first_ns = 5000000,
	.refresh_ns = 5000000,
	.refresh_soon_first_ns = 50000,
	.refresh_soon_ns = 2000000,
};

/* ---- the caller, between two chunks ---- */

void job_stop_if_killed(struct kernel_job *job)
{
	struct task_struct *task = READ_ONCE(job->task);

	if (task && (job->ctl->flags & KTASK_KILLABLE) &&
	    fatal_signal_pending(task))
		kt_job_stop(&job->ctx.job, -EINTR);
}

/* Helpers leave meanwhile, and CPUs that were promised to them are released. */
static void freeze_caller(struct kernel_job *job)
{
	kt_context_adjust(&job->ctx, 1);
	job->ctx.next_refresh_ns = 0;
	try_to_freeze();
}

/*
 * Has the host stopped a CPU that a helper computes on?  It says so of CPUs that idle as
 * well, as that of a helper that sleeps.  Until the end of the read-side section the task
 * of a helper that leaves is not freed.
 */
static bool helper_is_stopped(struct kt_helpers *helpers)
{
	bool stopped = false;
	unsigned int i;

	rcu_read_lock();
	for (i = 0; i < helpers->nr_used && !stopped; i++) {
		struct kt_item *item = &helpers->items[i];
		struct task_struct *task;

		if (!item->submitted ||
		    pool_item_state(&item->host.pooled) != POOL_ITEM_RUNNING)
			continue;
		task = READ_ONCE(item->host.pooled.helper->task);
		stopped = task && task_is_running(task) &&
			  vcpu_is_preempted(task_cpu(task));
	}
	rcu_read_unlock();
	return stopped;
}

/* Read the hypervisor's clock of stolen time.  One that never advanced may be none. */
static void ask_hypervisor(struct kt_helpers *helpers,
			   struct steal_sample *sample)
{
	sample->cpu = raw_smp_processor_id();
	sample->stolen_ns =
		READ_ONCE(kcpustat_cpu(sample->cpu).cpustat[CPUTIME_STEAL]);
	sample->tells = sample->stolen_ns;
	sample->helper_stopped = sample->tells && helper_is_stopped(helpers);
}

/* Sample the caller's last chunk, and how much the job had done when it ended. */
static void take_sample(struct kernel_job *job, struct steal_sample *sample)
{
	struct kt_context *ctx = &job->ctx;

	sample->units = kt_context_units(ctx);
	sample->own_units = ctx->caller.units;
	sample->switches = current->nvcsw + current->nivcsw;
	sample->helped =
		ctx->job.threads > 1 || kt_helpers_running(&ctx->helpers);
	ask_hypervisor(&ctx->helpers, sample);
}

/* Helpers leave if the host has no CPUs for them, and may come when it has. */
static void check_steal(struct kernel_job *job, u64 now_ns)
{
	struct steal_sample sample = { .now_ns = now_ns };
	bool allowed = steal_allows(&job->steal), found;

	take_sample(job, &sample);
	if (steal_step(&job->steal, &sample, &found) != allowed)
		job->ctx.next_refresh_ns = 0;
	stats_add(STAT_HOST_LACKS, found);
	if (allowed && !steal_allows(&job->steal))
		kt_context_adjust(&job->ctx, 1);
}

static bool tick_caller(struct kt_worker *worker, uint64_t now_ns)
{
	struct kernel_job *job =
		container_of(worker, struct kernel_job, ctx.caller);

	job_assert_caller(job);
	cond_resched();
	/* A job with this flag has a caller that holds no lock. */
	if ((job->ctl->flags & KTASK_CALLER_PROCESS) && freezing(current))
		freeze_caller(job);
	job_stop_if_killed(job);
	if (job->watched)
		check_steal(job, now_ns);
	return kt_context_tick(worker, now_ns);
}

/* ---- beginning ---- */

static void init_core(struct kt_job *core, const struct ktask_ctl *ctl)
{
	core->func = ctl->thread_func;
	core->undo = ctl->undo_func;
	core->iter = ctl->iter_func == ktask_iter_range ? NULL : ctl->iter_func;
	core->arg = ctl->func_arg;
	core->split.min_chunk = ctl->min_chunk_size;
	core->split.align = ctl->align ? ctl->align : 1;
	core->split.target_ns =
		(u64)(ctl->chunk_us ? ctl->chunk_us : CHUNK_US) * 1000;
}

static void init_range(struct kt_range *range, const struct ktask_node *node)
{
	range->start = node->start;
	range->units = node->task_size;
	range->node = node->nid;
}

static void init_state(struct kernel_job *job, const struct ktask_ctl *ctl)
{
	job->ctl = ctl;
	job->task = current;
	job->client = ktask_task();
	job->mm = ctl->flags & KTASK_CALLER_MM ? current->mm : NULL;
	job->cred = current_cred();
	job->cpus = NULL;
	job->group = NULL;
	job->scope = inherit_scope();
	job->nesting = 0;
	job->share_entry = -1;
}

static void init_context(struct kt_context *ctx, const struct ktask_ctl *ctl)
{
	ctx->caller.tick = tick_caller;
	ctx->caller.node = numa_node_id();
	ctx->interruptible = ctl->flags & KTASK_KILLABLE;
	ctx->fixed = pool_boots();
	ctx->helpers.items = NULL;
}

int job_init(struct kernel_job *job, struct kt_range *ranges,
	     const struct ktask_node *nodes, size_t nr_nodes,
	     const struct ktask_ctl *ctl)
{
	struct kt_job *core = &job->ctx.job;
	size_t i;
	int error;

	for (i = 0; i < nr_nodes; i++)
		init_range(&ranges[i], &nodes[i]);
	init_core(core, ctl);
	core->ranges = ranges;
	core->nr_ranges = (unsigned int)nr_nodes;
	error = kt_context_init(&job->ctx, &caller_pace);
	if (error)
		return error;
	init_state(job, ctl);
	init_context(&job->ctx, ctl);
	return 0;
}

/* CPUs that threads of the job may run on, the caller's own included. */
static unsigned int max_threads(const struct ktask_ctl *ctl)
{
	unsigned int nr = 0;
	int cpu;

	for_each_cpu_and(cpu, current->cpus_ptr, cpu_online_mask) nr +=
		!ctl->cpus || cpumask_test_cpu(cpu, ctl->cpus);
	/* A mask without the caller's CPU leaves all of its CPUs to helpers. */
	if (ctl->cpus && !cpumask_test_cpu(raw_smp_processor_id(), ctl->cpus))
		nr++;
	nr = min(nr, kt_load(&pool_machine()->limit) + 1);
	if (ctl->max_threads)
		nr = min(nr, ctl->max_threads);
	if (nr > 1)
		nr = min(nr, quota_threads());
	return max(nr, 1u);
}

/*
 * The kernel clears what it allocates (init_on_alloc), up to the next power of two: 512
 * bytes for the one item of two threads if that has 264.  Kernels that look for errors
 * have larger locks.
 */
static_assert(IS_ENABLED(CONFIG_DEBUG_SPINLOCK) ||
	      IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC) ||
	      sizeof(struct kt_item) <= 256);

/* Fewer without memory.  Never into reclaim: the caller may hold locks that it
 * takes.  The engine resets what is its own. */
static void alloc_items(struct kt_helpers *helpers, unsigned int nr)
{
	unsigned int i;

	for (; nr && !helpers->items; nr = nr / 2) {
		helpers->items = kmalloc_array(nr, sizeof(*helpers->items),
					       GFP_NOWAIT | __GFP_NOWARN);
		helpers->nr = helpers->items ? nr : 0;
	}
	for (i = 0; i < helpers->nr; i++)
		helpers->items[i].host.process_helper = NULL;
}

void job_begin(struct kernel_job *job, bool detached)
{
	struct kt_context *ctx = &job->ctx;
	struct kernel_job *outer = job_current();
	unsigned int max;

	/* ktask_wait() of another thread may change the outer job's nesting meanwhile. */
	job->nesting = outer ? READ_ONCE(outer->nesting) + 1 : 0;
	ctx->detached = detached;
	/* A started job may outlive the chunk in which it was started, so it has no outer one. */
	max = kt_context_size(ctx, max_threads(job->ctl),
			      outer && !detached ? &outer->ctx : NULL,
			      job->ctl->deadline_ns);
	alloc_items(&ctx->helpers, max - 1);
	job->watched = ctx->helpers.nr && !detached && !ctx->fixed &&
		       COMPAT_IS_GUEST && READ_ONCE(watch_steal);
	if (job->watched)
		steal_begin(&job->steal, ctx->start_ns);
	kt_context_begin(ctx);
}

void job_work(struct kernel_job *job)
{
	struct job_entry entry;

	if (!job->ctx.helpers.nr) {
		kt_context_work(&job->ctx);
		return;
	}
	job_enter(&entry, job);
	kt_context_work(&job->ctx);
	job_leave(&entry);
}

/* ---- the end ---- */

static u64 remote_chunks(const struct kt_job *core)
{
	u64 sum = 0;
	unsigned int i;

	for (i = 0; i < core->nr_ranges; i++)
		sum += core->ranges[i].remote_chunks;
	return sum;
}

static void fill_result(struct ktask_result *result, struct kt_context *ctx)
{
	const struct kt_worker *failed = kt_undo_lowest(
		kt_context_worker_at, ctx, kt_context_nr_workers(ctx));

	result->error = ctx->error;
	result->fail_error = failed ? failed->error : 0;
	result->fail_pos = failed ? failed->fail.start : NULL;
	result->threads = ctx->threads;
	result->helpers_lent = ctx->lent;
	result->chunks = ctx->chunks;
	result->remote_chunks = remote_chunks(&ctx->job);
	result->units = ctx->units;
	result->wall_ns = ctx->end_ns - ctx->start_ns;
}

static void count_job(const struct kt_context *ctx)
{
	bool helped = ctx->helpers.nr;

	stats_add(helped ? STAT_JOBS : STAT_ALONE, 1);
	stats_add(STAT_FAILED, ctx->error != 0);
	/* Helpers have counted their own chunks. */
	stats_add(STAT_CHUNKS, ctx->caller.chunks);
	stats_add(STAT_UNITS, ctx->caller.units);
	stats_add(STAT_REMOTE, remote_chunks(&ctx->job));
	stats_add(STAT_HELPED, ctx->helpers.threads);
	stats_add(STAT_LENT, ctx->lent);
	if (helped)
		stats_add(STAT_WALL_NS, ctx->end_ns - ctx->start_ns);
}

void job_tell_end(struct kernel_job *job)
{
	struct kt_context *ctx = &job->ctx;

	trace_ktask_job_end(job->ctl->thread_func, ctx->error, ctx->units,
			    ctx->end_ns - ctx->start_ns, ctx->threads);
	count_job(ctx);
	if (job->ctl->result)
		fill_result(job->ctl->result, ctx);
}

int job_end(struct kernel_job *job)
{
	int error;

	job_assert_caller(job);
	error = kt_context_end(&job->ctx);
	kfree(job->ctx.helpers.items);
	return error;
}

/* ---- what can be wrong with it ---- */

int job_check(const struct ktask_ctl *ctl, const struct ktask_node *nodes,
	      size_t nr_nodes)
{
	size_t i;

	if (!ctl || (!nodes && nr_nodes) || nr_nodes > UINT_MAX ||
	    (ctl->flags & ~KTASK_FLAGS))
		return -EINVAL;
	if ((ctl->flags & (KTASK_CALLER_MM | KTASK_CALLER_PROCESS)) &&
	    !current->mm)
		return -EINVAL;
	for (i = 0; i < nr_nodes; i++)
		if (nodes[i].nid < NUMA_NO_NODE)
			return -EINVAL;
	return 0;
}

int job_check_each(const struct ktask_node *nodes, size_t nr_nodes,
		   const struct ktask_ctl *ctl)
{
	struct kt_range range;
	struct kt_job core;
	int error = 0;
	size_t i;

	init_core(&core, ctl);
	core.ranges = &range;
	core.nr_ranges = 1;
	for (i = 0; i < nr_nodes && !error; i++) {
		init_range(&range, &nodes[i]);
		error = kt_job_check(&core);
	}
	return error;
}
