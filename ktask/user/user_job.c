/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job of this process from its control block to its result: what the host prepares
 * before the engine begins, and cleans up after it.
 *
 * The life of the job in between is in engine/context.c, and the operations that the
 * engine calls are in user/user_host.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/undo.h"
#include "user/account.h"
#include "user/blocking/user_monitor.h"
#include "user/limits/overload.h"
#include "user/job_cpus.h"
#include "util/remaining.h"
#include "user/blocking/manager.h"

/* A job that is shorter than a tick reads policy if no job has read it for this time. */
#define STALE_NS 1000000000
/* In the first part of a job, check at each tick whether it blocks. */
#define EARLY_NS 10000000
#define PROGRESS_MS 100
#define CHUNK_US 1000

static const struct kt_pace job_pace = {
	.tick_first_ns = 500000,
	.tick_ns = 500000,
	.refresh_first_ns = 0,
	.refresh_ns = 5000000,
	.refresh_soon_first_ns = 1000000,
	.refresh_soon_ns = 1000000,
};

/* ---- progress ---- */

void job_progress(struct user_job *job, struct ktask_progress *progress)
{
	struct kt_context *ctx = &job->ctx;
	uint64_t now_ns = kt_now_ns();
	uint64_t done = kt_context_units(ctx);
	uint64_t elapsed_ns =
		now_ns > ctx->start_ns ? now_ns - ctx->start_ns : 0;

	progress->struct_size = sizeof(*progress);
	progress->units_done = done;
	progress->units_total = ctx->units_total;
	progress->elapsed_ns = elapsed_ns;
	progress->remaining_ns =
		remaining_ns(elapsed_ns, done, ctx->units_total - done);
	progress->threads =
		kt_load(&ctx->job.threads) + manager_nr_helpers(job);
}

static int report_progress(struct kt_context *ctx, bool last)
{
	const struct ktask_ctl *ctl = job_of(ctx)->ctl;
	struct ktask_progress progress;

	job_progress(job_of(ctx), &progress);
	if (last) {
		progress.remaining_ns = 0;
		progress.threads = 1;
	}
	return ctl->progress_func(&progress, ctl->progress_arg);
}

/* ---- the caller ---- */

static bool tick_caller(struct kt_worker *worker, uint64_t now_ns)
{
	struct user_job *job =
		(struct user_job *)((char *)worker -
				    offsetof(struct user_job, ctx.caller));

	if (now_ns < job->ctx.next_tick_ns)
		return false;
	if (job->manager)
		monitor_join();
	if (now_ns < job->ctx.start_ns + EARLY_NS)
		manager_refresh(job, now_ns);
	return kt_context_tick(worker, now_ns);
}

void job_work(struct user_job *job)
{
	struct job_current *current = job_current();
	struct job_current outer = *current;

	job_set_owner(job);
	job->outer = outer.job;
	if (job->outer)
		kt_add(&job->outer->nested, 1);
	current->job = job;
	current->worker = &job->ctx.caller;
	kt_context_work(&job->ctx);
	*current = outer;
}

/* ---- beginning ---- */

static int init_ranges(struct user_job *job, const struct ktask_node *nodes,
		       size_t nr_nodes)
{
	job->ranges = job->own_ranges;
	if (nr_nodes > UINT32_MAX)
		return -ENOMEM;
	if (nr_nodes > JOB_RANGES)
		job->ranges = aligned_alloc(_Alignof(struct kt_range),
					    nr_nodes * sizeof(*job->ranges));
	if (!job->ranges)
		return -ENOMEM;
	for (size_t i = 0; i < nr_nodes; i++) {
		job->ranges[i].start = nodes[i].start;
		job->ranges[i].units = nodes[i].task_size;
		job->ranges[i].node = nodes[i].nid;
	}
	job->ctx.job.ranges = job->ranges;
	job->ctx.job.nr_ranges = (unsigned)nr_nodes;
	return 0;
}

static void init_core(struct kt_job *core, const struct ktask_ctl *ctl)
{
	core->func = ctl->thread_func;
	core->undo = ctl->undo_func;
	core->iter = ctl->iter_func == ktask_iter_range ? NULL : ctl->iter_func;
	core->arg = ctl->func_arg;
	core->split.min_chunk = ctl->min_chunk_size;
	core->split.align = ctl->align ? ctl->align : 1;
	core->split.target_ns =
		(uint64_t)(ctl->chunk_us ? ctl->chunk_us : CHUNK_US) * 1000;
}

static void init_context(struct kt_context *ctx, const struct ktask_ctl *ctl)
{
	unsigned ms = ctl->progress_ms ? ctl->progress_ms : PROGRESS_MS;

	ctx->caller.tick = tick_caller;
	ctx->fixed = ctl->flags & KTASK_FIXED;
	ctx->measure_cpu = ctl->result != NULL || account_on();
	ctx->progress = ctl->progress_func ? report_progress : NULL;
	ctx->progress_ns = (uint64_t)ms * 1000000;
}

static void init_state(struct user_job *job, const struct ktask_ctl *ctl)
{
	job->ctl = ctl;
	job->parent = job_current()->job;
	job->faults_only = job_current()->faults_only;
	/* Not of jobs that its chunks begin. */
	job_current()->faults_only = false;
	job->outer = NULL;
	job->nested = 0;
	job->manager = NULL;
	job->seen_ns = job->seen_cpu_ns = 0;
	job->seen_waits = job->seen_faults = 0;
	job->entry = -1;
	job->listed = job->nr_permitted = 0;
	job->nodes = NULL;
	job->alone = false;
	job->entered = false;
	job->unmade = false;
	job->ctx.helpers.items = job->own_items;
}

int job_init(struct user_job *job, const struct ktask_node *nodes,
	     size_t nr_nodes, const struct ktask_ctl *ctl)
{
	int error = init_ranges(job, nodes, nr_nodes);

	if (error)
		return error;
	init_state(job, ctl);
	init_core(&job->ctx.job, ctl);
	error = kt_context_init(&job->ctx, &job_pace);
	if (error) {
		job_release(job);
		return error;
	}
	init_context(&job->ctx, ctl);
	return 0;
}

void job_release(struct user_job *job)
{
	manager_release(job);
	if (job->ranges != job->own_ranges)
		free(job->ranges);
	if (job->ctx.helpers.items != job->own_items)
		free(job->ctx.helpers.items);
	free(job->nodes);
}

/* More items than fit; without memory the job does with fewer. */
static void make_items(struct user_job *job, unsigned nr)
{
	struct kt_helpers *helpers = &job->ctx.helpers;
	struct kt_item *items;

	helpers->nr = JOB_ITEMS;
	if (nr <= JOB_ITEMS)
		return;
	items = aligned_alloc(64, (nr * sizeof(*items) + 63) / 64 * 64);
	if (!items)
		return;
	helpers->items = items;
	helpers->nr = nr;
}

/* What policy and the client allow, whatever the size of the job. */
static unsigned max_threads(struct user_job *job)
{
	unsigned max = limits_threads(&job->affinity);

	if (job->ctl->max_threads)
		max = KT_MIN(max, job->ctl->max_threads);
	job->topo = topo_get();
	job->nr_cpus = job_cpus_begin(job);
	return KT_MIN(max, job->nr_cpus);
}

static unsigned size_context(struct user_job *job, unsigned max)
{
	return kt_context_size(&job->ctx, max,
			       job->parent ? &job->parent->ctx : NULL,
			       job->ctl->deadline_ns);
}

static void enter_pool(struct user_job *job, unsigned nr_helpers)
{
	pool_enter(nr_helpers, &job->cpus);
	job->entered = true;
}

static void prepare_helpers(struct user_job *job, unsigned max)
{
	if (max == 1)
		return;
	if (!job->ctx.detached && !job->ctx.fixed)
		job_begin_tuned(job, max);
	make_items(job, max - 1);
	job_cpus_split(job);
}

/* Helpers would get no CPU. */
static bool begins_overloaded(const struct user_job *job)
{
	unsigned max = job->ctl->max_threads ? job->ctl->max_threads : 2;

	return !job->ctx.detached &&
	       kt_split_threads(job->ctx.units_total, job->ctl->min_chunk_size,
				max) > 1 &&
	       overload_begins(kt_now_ns());
}

/*
 * The caller works alone, but in chunks.  Between two chunks it checks whether CPUs idle.
 * Only then does it read limits and make helpers, which takes 0.4 ms of CPU time in the
 * first job of a process, and several times as long while other threads run.
 */
static void begin_without_helpers(struct user_job *job)
{
	pool_watch_forks();
	job->generation = pool_generation();
	job->alone = true;
	job->ctx.may_grow = true;
	size_context(job, 1);
	kt_context_begin(&job->ctx);
	job->ctx.next_refresh_ns = job->ctx.start_ns + JOB_ALONE_NS;
}

void job_grow(struct user_job *job)
{
	struct kt_context *ctx = &job->ctx;
	unsigned max = kt_context_grow(ctx, max_threads(job));

	job->alone = false;
	enter_pool(job, max - 1);
	prepare_helpers(job, max);
	ctx->wanted = ctx->tune.threads;
	job_enter_registry(job);
}

void job_begin(struct user_job *job, bool detached)
{
	struct kt_context *ctx = &job->ctx;
	bool overloaded;
	unsigned max;

	job_set_owner(job);
	ctx->detached = detached;
	overloaded = begins_overloaded(job);
	/* If the caller will block, a thread in its place may find a CPU. */
	if (overloaded && !(job->ctl->flags & KTASK_BLOCKS)) {
		begin_without_helpers(job);
		return;
	}
	max = size_context(job, max_threads(job));
	if (detached)
		job->started_cpus = job->affinity;
	job->unmade = overloaded;
	enter_pool(job, overloaded ? 0 : max - 1);
	job->generation = pool_generation();
	prepare_helpers(job, max);
	/* While the caller is blocked nobody takes the steps of a ramp. */
	if (job->ctl->flags & KTASK_BLOCKS)
		kt_tune_known(&ctx->tune, ctx->tune.threads);
	kt_context_begin(ctx);
	if (max == 1)
		return;
	if (!detached)
		manager_begin(job, ctx->start_ns);
	/* Reading policy takes up to 150 us after a pause.  Without a ramp helpers begin
	 * in that time. */
	if (ctx->start_ns > job_policy_read_ns() + STALE_NS)
		kt_context_refresh(ctx, ctx->start_ns);
}

/* ---- the end ---- */

void job_check_fork(struct user_job *job)
{
	pool_check_fork();
	if (job->generation == pool_generation())
		return;
	job_set_owner(job);
	if (!job->ctx.orphan)
		kt_context_orphan(&job->ctx);
}

/* A refused thread or allocation is none. */
static void assert_error_has_reason(struct user_job *job, int error)
{
	kt_assert(!error || error == -ECANCELED || error == -ETIMEDOUT ||
		  kt_undo_lowest(kt_context_worker_at, &job->ctx,
				 kt_context_nr_workers(&job->ctx)));
}

int job_end(struct user_job *job)
{
	int error;

	job_check_fork(job);
	monitor_leave();
	error = kt_context_end(&job->ctx);
	assert_error_has_reason(job, error);
	if (job->outer)
		kt_add(&job->outer->nested, (uint32_t)-1);
	return error;
}

/* The forking thread may be inside chunks of nested jobs. */
void pool_on_fork_child(void)
{
	for (struct user_job *job = job_current()->job; job; job = job->outer) {
		job_set_owner(job);
		kt_context_orphan(&job->ctx);
	}
}
