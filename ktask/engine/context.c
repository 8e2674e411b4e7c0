/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The life of a job, as its caller drives it.
 *
 * Only the caller decides.  Between two of its chunks it reports progress, adapts the
 * number of threads, and submits more helpers or lets some leave (engine/helpers.c).  At
 * the end it waits for the helpers that have begun, undoes what was done if the job
 * failed, and sums up.
 *
 * Behaves badly while the caller is in a long chunk: nobody adapts the job.
 */
#include "core/claim.h"
#include "core/undo.h"
#include "engine/helpers.h"

int kt_context_init(struct kt_context *ctx, const struct kt_pace *pace)
{
	int error = kt_job_check(&ctx->job);

	if (error)
		return error;
	kt_job_begin(&ctx->job);
	/* If there are several ranges, place_caller() chooses one. */
	kt_worker_begin_at(&ctx->caller, &ctx->job, KT_NO_NODE, 0);
	ctx->caller.tick = kt_context_tick;
	ctx->pace = pace;
	kt_helpers_reset(&ctx->helpers);
	ctx->helpers.nr = 0;
	ctx->compensating = NULL;
	ctx->fixed = false;
	ctx->measure_cpu = false;
	ctx->interruptible = false;
	ctx->detached = false;
	ctx->may_grow = false;
	ctx->progress = NULL;
	ctx->changes = NULL;
	ctx->changes_seen = 0;
	ctx->orphan = false;
	ctx->cpus_generation = 0;
	ctx->leaving = false;
	ctx->ramping = false;
	ctx->placed = false;
	ctx->caller_cpu_ns = 0;
	ctx->units_total = kt_job_units(&ctx->job);
	ctx->chunks = 0;
	ctx->units = 0;
	ctx->helper_cpu_ns = 0;
	ctx->largest_chunk = 0;
	ctx->threads = 0;
	ctx->lent = 0;
	return 0;
}

/* ---- beginning ---- */

/* The first report is due at the first tick. */
static void start_clocks(struct kt_context *ctx, uint64_t timeout_ns)
{
	uint64_t now_ns = kt_now_ns();

	ctx->start_ns = now_ns;
	ctx->now_ns = now_ns;
	ctx->next_tick_ns = now_ns + ctx->pace->tick_first_ns;
	ctx->next_refresh_ns = now_ns + ctx->pace->refresh_first_ns;
	ctx->soon_refresh_ns = now_ns;
	ctx->until_ns = UINT64_MAX;
	ctx->next_progress_ns = now_ns;
	ctx->job.deadline_ns = 0;
	if (timeout_ns && timeout_ns <= UINT64_MAX - now_ns)
		ctx->job.deadline_ns = now_ns + timeout_ns;
}

/* A nested job draws its helpers from the budget of the outermost one. */
static void share_budget(struct kt_context *ctx,
			 const struct kt_context *parent, unsigned max)
{
	ctx->own_budget.used = 0;
	ctx->own_budget.limit = max - 1;
	ctx->budget = parent ? parent->budget : &ctx->own_budget;
}

static void begin_tune(struct kt_context *ctx, unsigned max, uint64_t now_ns)
{
	kt_tune_begin(&ctx->tune, max, ctx->units_total, now_ns);
	kt_tune_chunk(&ctx->tune, ctx->job.split.min_chunk);
}

unsigned kt_context_size(struct kt_context *ctx, unsigned max,
			 const struct kt_context *parent, uint64_t timeout_ns)
{
	start_clocks(ctx, timeout_ns);
	share_budget(ctx, parent, max);
	max = kt_split_threads(ctx->units_total, ctx->job.split.min_chunk, max);
	begin_tune(ctx, max, ctx->start_ns);
	return max;
}

static void place_caller(struct kt_context *ctx)
{
	ctx->caller.node = kt_host.current_node();
	ctx->caller.range = kt_claim_home(&ctx->job, ctx->caller.node, 0);
	ctx->placed = true;
}

/* No helper, and nobody to report to: one chunk for each range. */
static void begin_alone(struct kt_context *ctx)
{
	if (!ctx->detached && !ctx->progress && !ctx->job.deadline_ns &&
	    !ctx->interruptible)
		ctx->job.split.min_chunk = UINT64_MAX;
}

static unsigned allowed_threads(struct kt_context *ctx, uint64_t now_ns,
				bool refresh)
{
	unsigned threads;

	ctx->until_ns = UINT64_MAX;
	/* Read this first: a change while limits are read is then seen next time. */
	if (ctx->changes)
		ctx->changes_seen = kt_load(ctx->changes);
	threads = kt_host.allowed_threads(ctx, now_ns, refresh, &ctx->until_ns);
	/* Must hold whatever other processes wrote that a host has read. */
	kt_assert(threads >= 1 && threads <= ctx->wanted);
	return threads;
}

/* A detached job has no ramp, because nobody takes its steps; nor has a job with
 * compensating helpers, whose manager wants all threads. */
static void begin_ramp(struct kt_context *ctx)
{
	struct kt_split *split = &ctx->job.split;

	if (ctx->detached || ctx->fixed || ctx->compensating ||
	    !ctx->helpers.nr || !kt_tune_ramp(&ctx->tune))
		return;
	ctx->ramping = true;
	ctx->target_ns = split->target_ns;
	split->target_ns = KT_MIN(split->target_ns, KT_TUNE_RAMP_NS);
	ctx->next_tick_ns = ctx->start_ns;
}

void kt_context_begin(struct kt_context *ctx)
{
	begin_ramp(ctx);
	ctx->wanted = ctx->tune.threads;
	kt_host.notify(ctx, KT_STAGE_BEGUN);
	if (!ctx->helpers.nr) {
		if (!ctx->may_grow)
			begin_alone(ctx);
		return;
	}
	if (ctx->job.nr_ranges > 1 && !ctx->detached) {
		place_caller(ctx);
		ctx->job.ranges[ctx->caller.range].dealt++;
	}
	kt_context_adjust(ctx, allowed_threads(ctx, ctx->start_ns, false));
	/* Helpers may not have left the job before yet. */
	if (ctx->job.threads < ctx->wanted)
		ctx->next_refresh_ns = KT_MIN(
			ctx->next_refresh_ns,
			ctx->start_ns + ctx->pace->refresh_soon_first_ns);
}

bool kt_context_resubmit(struct kt_context *ctx, uint64_t now_ns)
{
	unsigned threads = ctx->job.threads;

	if (threads >= ctx->wanted || kt_job_idle(&ctx->job) ||
	    kt_job_stopped(&ctx->job))
		return true;
	ctx->now_ns = now_ns;
	kt_context_adjust(ctx,
			  KT_MAX(threads, allowed_threads(ctx, now_ns, true)));
	return ctx->job.threads >= ctx->wanted;
}

unsigned kt_context_grow(struct kt_context *ctx, unsigned max)
{
	uint64_t left = ctx->units_total - kt_context_units(ctx);

	ctx->may_grow = false;
	ctx->own_budget.limit = max - 1;
	max = kt_split_threads(left, ctx->job.split.min_chunk, max);
	begin_tune(ctx, max, kt_now_ns());
	if (max > 1 && ctx->job.nr_ranges > 1)
		ctx->job.ranges[ctx->caller.range].dealt++;
	return max;
}

/* ---- the caller, between two chunks ---- */

/* As long as the job has lasted, within limits. */
static uint64_t growing_ns(const struct kt_context *ctx, uint64_t now_ns,
			   uint64_t least_ns, uint64_t most_ns)
{
	uint64_t past_ns = now_ns > ctx->start_ns ? now_ns - ctx->start_ns : 0;

	return KT_MIN(KT_MAX(past_ns, least_ns), most_ns);
}

void kt_context_refresh(struct kt_context *ctx, uint64_t now_ns)
{
	const struct kt_pace *pace = ctx->pace;
	uint64_t soon_ns = growing_ns(ctx, now_ns, pace->refresh_soon_first_ns,
				      pace->refresh_soon_ns);
	unsigned threads;

	ctx->now_ns = now_ns;
	threads = allowed_threads(ctx, now_ns, true);
	if (!kt_job_idle(&ctx->job) && !kt_job_stopped(&ctx->job))
		kt_context_adjust(ctx, threads);
	kt_host.notify(ctx, KT_STAGE_ADJUSTED);
	ctx->soon_refresh_ns = now_ns + soon_ns;
	ctx->next_refresh_ns = KT_MIN(now_ns + pace->refresh_ns, ctx->until_ns);
	/* Fewer than wanted, or a helper that gives up its permit. */
	if (ctx->job.threads < ctx->wanted || ctx->leaving)
		ctx->next_refresh_ns =
			KT_MIN(ctx->next_refresh_ns, ctx->soon_refresh_ns);
}

/* A limit ends it too. */
static void end_ramp(struct kt_context *ctx, uint64_t now_ns)
{
	if (ctx->compensating && kt_tune_ramps(&ctx->tune))
		kt_tune_ramp_end(&ctx->tune, now_ns, kt_context_units(ctx));
	if (kt_tune_ramps(&ctx->tune))
		return;
	ctx->ramping = false;
	kt_store(&ctx->job.split.target_ns, ctx->target_ns);
}

static unsigned take_ramp_step(struct kt_context *ctx, uint64_t now_ns)
{
	unsigned threads = kt_tune_ramp_step(
		&ctx->tune, now_ns, ctx->caller.units, kt_context_units(ctx));

	/* After each chunk: a step takes few. */
	ctx->next_tick_ns = now_ns;
	end_ramp(ctx, now_ns);
	return threads;
}

static unsigned threads_that_pay(struct kt_context *ctx, uint64_t now_ns)
{
	if (ctx->ramping)
		end_ramp(ctx, now_ns);
	if (ctx->ramping)
		return take_ramp_step(ctx, now_ns);
	if (ctx->fixed)
		return ctx->wanted;
	/* Then the concurrency manager measures the rate. */
	if (ctx->compensating)
		return ctx->tune.max;
	return kt_tune_step(&ctx->tune, now_ns, kt_context_units(ctx));
}

static bool refresh_due(const struct kt_context *ctx, uint64_t now_ns)
{
	if (now_ns >= ctx->next_refresh_ns)
		return true;
	return ctx->changes && now_ns >= ctx->soon_refresh_ns &&
	       kt_load(ctx->changes) != ctx->changes_seen;
}

static void report_progress(struct kt_context *ctx, uint64_t now_ns)
{
	ctx->next_progress_ns = now_ns + ctx->progress_ns;
	if (ctx->progress(ctx, false))
		kt_job_stop(&ctx->job, -ECANCELED);
}

bool kt_context_tick(struct kt_worker *worker, uint64_t now_ns)
{
	struct kt_context *ctx =
		(struct kt_context *)((char *)worker -
				      offsetof(struct kt_context, caller));
	unsigned wanted;

	if (now_ns < ctx->next_tick_ns)
		return false;
	ctx->next_tick_ns =
		now_ns + growing_ns(ctx, now_ns, ctx->pace->tick_first_ns,
				    ctx->pace->tick_ns);
	if (ctx->progress && now_ns >= ctx->next_progress_ns)
		report_progress(ctx, now_ns);
	wanted = threads_that_pay(ctx, now_ns);
	if (wanted == ctx->wanted && !refresh_due(ctx, now_ns))
		return false;
	ctx->wanted = wanted;
	kt_context_refresh(ctx, now_ns);
	kt_tune_limit(&ctx->tune, ctx->job.threads,
		      ctx->job.threads >= ctx->wanted);
	return false;
}

void kt_context_work(struct kt_context *ctx)
{
	/* Until sum_up() the time when it began. */
	if (ctx->measure_cpu)
		ctx->caller_cpu_ns = kt_cpu_time_ns();
	if (ctx->job.nr_ranges > 1 && !ctx->placed)
		place_caller(ctx);
	/* What the host did since it read the clock is no part of the first chunk. */
	if (ctx->ramping)
		ctx->tune.epoch_ns = kt_now_ns();
	kt_job_work(&ctx->job, &ctx->caller);
}

/* ---- what others see ---- */

uint64_t kt_context_units(const struct kt_context *ctx)
{
	const struct kt_helpers *others = kt_load_acquire(&ctx->compensating);
	uint64_t units =
		kt_load(&ctx->caller.units) + kt_helpers_units(&ctx->helpers);

	if (others)
		units += kt_helpers_units(others);
	/* A helper that leaves may be counted twice for a moment. */
	return KT_MIN(units, ctx->units_total);
}

bool kt_context_settled(const struct kt_context *ctx)
{
	const struct kt_helpers *others = kt_load_acquire(&ctx->compensating);

	if (!kt_job_stopped(&ctx->job) && !kt_job_idle(&ctx->job))
		return false;
	return !kt_helpers_running(&ctx->helpers) &&
	       (!others || !kt_helpers_running(others));
}

const struct kt_worker *kt_context_worker_at(void *context, unsigned index)
{
	struct kt_context *ctx = context;

	if (!index)
		return &ctx->caller;
	if (index <= ctx->helpers.nr_used)
		return &ctx->helpers.items[index - 1].worker;
	index -= ctx->helpers.nr_used + 1;
	return &ctx->compensating->items[index].worker;
}

/* ---- the end ---- */

static void add_group(struct kt_context *ctx, const struct kt_helpers *helpers)
{
	ctx->chunks += helpers->chunks;
	ctx->units += helpers->units;
	ctx->helper_cpu_ns += helpers->cpu_ns;
	ctx->largest_chunk = KT_MAX(ctx->largest_chunk, helpers->largest_chunk);
	ctx->threads += helpers->threads;
	ctx->lent += helpers->lent;
}

static void sum_up(struct kt_context *ctx)
{
	ctx->chunks = ctx->caller.chunks;
	ctx->units = ctx->caller.units;
	ctx->largest_chunk = ctx->caller.largest_chunk;
	ctx->threads = ctx->caller.chunks > 0;
	add_group(ctx, &ctx->helpers);
	if (ctx->compensating)
		add_group(ctx, ctx->compensating);
	if (ctx->measure_cpu)
		ctx->caller_cpu_ns = kt_cpu_time_ns() - ctx->caller_cpu_ns;
}

/* All items are cancelled before one is waited for, so that no more begin. */
static void drain_helpers(struct kt_context *ctx)
{
	bool left;

	ctx->now_ns = ctx->work_end_ns;
	left = kt_helpers_cancel(ctx, &ctx->helpers);
	kt_host.notify(ctx, KT_STAGE_DRAINING);
	if (ctx->compensating) {
		kt_store(&ctx->compensating->wanted, 0);
		kt_helpers_drain(ctx, ctx->compensating);
	}
	if (left)
		kt_helpers_drain(ctx, &ctx->helpers);
	/* No helper may touch the job from here on. */
	kt_assert(!kt_helpers_running(&ctx->helpers));
	kt_assert(!ctx->compensating || !kt_helpers_running(ctx->compensating));
	kt_host.notify(ctx, KT_STAGE_DRAINED);
}

/* Jobs nested in this one have given back what they took of its budget. */
static void assert_budget_returned(const struct kt_context *ctx)
{
	kt_assert(ctx->budget != &ctx->own_budget ||
		  !kt_load(&ctx->own_budget.used));
}

/* Nobody could be waited for and nothing was undone. */
static bool ends_at_once(const struct kt_context *ctx)
{
	return !ctx->helpers.nr && !ctx->compensating && !ctx->error &&
	       !ctx->progress;
}

int kt_context_end(struct kt_context *ctx)
{
	/* The caller's last chunk ended then; a clock is not read for nothing. */
	ctx->work_end_ns =
		ctx->caller.end_ns ? ctx->caller.end_ns : kt_now_ns();
	if (!ctx->orphan)
		drain_helpers(ctx);
	assert_budget_returned(ctx);
	if (ctx->progress && !ctx->orphan)
		ctx->progress(ctx, true);
	ctx->error = kt_job_error(&ctx->job);
	sum_up(ctx);
	if (ctx->error && !ctx->orphan)
		kt_undo(&ctx->job, kt_context_worker_at, ctx,
			kt_context_nr_workers(ctx));
	ctx->end_ns = ends_at_once(ctx) ? ctx->work_end_ns : kt_now_ns();
	kt_host.notify(ctx, KT_STAGE_ENDED);
	return ctx->error;
}

void kt_context_orphan(struct kt_context *ctx)
{
	ctx->orphan = true;
	ctx->budget->used = 0;
	kt_job_stop(&ctx->job, -ECANCELED);
}
