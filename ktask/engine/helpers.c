/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Helpers: a work item from its submission to the counts that its helper leaves behind.
 *
 * Owns the pairing of permits and budget with items.  At the end of a job, an item that no
 * helper has begun is cancelled, and only helpers that have begun are waited for.  So a
 * helper that gets no CPU makes no job slower.
 *
 * Does not own threads, priorities or CPUs: the host does (engine/host.h).
 *
 * Locking: engine/context.h.
 */
#include "core/claim.h"
#include "core/placement.h"
#include "engine/helpers.h"

/* An item that nobody took for so long shall be submitted for any CPU. */
#define STARVED_NS 3000000

/*
 * A helper of the lowest priority that shares its CPU runs for one tick of the scheduler
 * and then waits for a second.  Chunks take about a millisecond.  If a chunk has not
 * ended after this time, its helper has no CPU.
 */
#define STUCK_NS 20000000

/* ---- the helper's side ---- */

/* Item i is the (i + 2)-th thread, counting the caller. */
bool kt_item_tick(struct kt_worker *worker, uint64_t now_ns)
{
	struct kt_item *item = kt_item_of(worker);
	const struct kt_context *ctx = item->ctx;

	(void)now_ns;
	if (item->cpus_generation != kt_load(&ctx->cpus_generation))
		return true;
	if (item->permitted)
		return item->index + 2 > kt_load(&ctx->job.threads);
	return item->index >= kt_load(&ctx->compensating->wanted);
}

void kt_item_work(struct kt_item *item)
{
	struct kt_context *ctx = item->ctx;
	uint64_t cpu_ns = ctx->measure_cpu ? kt_cpu_time_ns() : 0;

	kt_job_work(&ctx->job, &item->worker);
	if (ctx->measure_cpu)
		item->cpu_ns = kt_cpu_time_ns() - cpu_ns;
}

void kt_item_release(struct kt_item *item)
{
	struct kt_cap *budget = item->ctx->budget;

	if (!item->permitted)
		return;
	kt_host.permit_put(item);
	kt_cap_put(budget);
}

/* ---- the submitter's side ---- */

static void reset_item(struct kt_context *ctx, struct kt_item *item,
		       unsigned index)
{
	item->ctx = ctx;
	item->index = index;
	item->submitted = false;
	item->counted = false;
	item->starved = false;
	item->worker.failed = false;
}

static void init_submission(struct kt_context *ctx, struct kt_item *item,
			    uint64_t now_ns)
{
	item->cpus_generation = ctx->cpus_generation;
	item->submitted_ns = now_ns;
	item->preferred = false;
	item->seen_ns = 0;
	item->cpu_ns = 0;
	item->node = KT_NO_NODE;
}

static bool submit_item(struct kt_item *item)
{
	kt_assert(!item->submitted);
	/* Before: from then on the helper may be in a chunk. */
	kt_store(&item->submitted, true);
	if (kt_host.submit(item))
		return true;
	kt_store(&item->submitted, false);
	return false;
}

static bool has_permit(const struct kt_job *job, int node)
{
	return kt_host.node_has_permit((struct kt_context *)job, node);
}

static unsigned deal_range(struct kt_job *job)
{
	return kt_placement_deal(job,
				 kt_host.node_has_permit ? has_permit : NULL);
}

void kt_item_redeal(struct kt_item *item, int id)
{
	struct kt_job *job = &item->ctx->job;

	kt_placement_undeal(job, item->range);
	item->range = kt_claim_home(job, id, item->index + 1);
	job->ranges[item->range].dealt++;
}

/* A helper with permits, for the range that has the most left to do. */
static bool submit_helper(struct kt_context *ctx, struct kt_item *item)
{
	struct kt_job *job = &ctx->job;
	int node;

	init_submission(ctx, item, ctx->now_ns);
	item->permitted = true;
	item->range = deal_range(job);
	node = kt_host.serving_node(ctx, item->range, item->index);
	if (!kt_cap_get(ctx->budget))
		goto undeal;
	if (!kt_host.permit_get(item, node))
		goto put_budget;
	kt_worker_begin_at(&item->worker, job, item->node, item->range);
	item->worker.tick = kt_item_tick;
	if (submit_item(item))
		return true;
	kt_host.permit_put(item);
put_budget:
	kt_cap_put(ctx->budget);
undeal:
	kt_placement_undeal(job, item->range);
	return false;
}

/* A helper has left: add what it did, free the item. */
static void collect_item(struct kt_context *ctx, struct kt_helpers *helpers,
			 struct kt_item *item)
{
	struct kt_worker *worker = &item->worker;

	kt_assert(item->submitted);
	kt_store(&item->submitted, false);
	if (item->permitted)
		kt_placement_undeal(&ctx->job, item->range);
	helpers->chunks += worker->chunks;
	kt_store(&helpers->units, helpers->units + worker->units);
	helpers->cpu_ns += item->cpu_ns;
	helpers->largest_chunk =
		KT_MAX(helpers->largest_chunk, worker->largest_chunk);
	if (worker->chunks && !item->counted) {
		item->counted = true;
		helpers->threads++;
	}
	/* Counted; a failure is kept for undo. */
	worker->chunks = 0;
	kt_store(&worker->units, 0);
}

/* Return: false if a helper has begun. */
static bool cancel_item(struct kt_context *ctx, struct kt_item *item,
			uint64_t now_ns)
{
	if (!kt_host.cancel(item, now_ns))
		return false;
	kt_item_release(item);
	if (item->permitted)
		kt_placement_undeal(&ctx->job, item->range);
	kt_store(&item->submitted, false);
	return true;
}

/* Preferred CPUs may be busy with other work while others idle. */
static bool is_starved(const struct kt_context *ctx, const struct kt_item *item)
{
	return item->preferred &&
	       ctx->now_ns - item->submitted_ns >= STARVED_NS &&
	       kt_host.state(item) == KT_ITEM_QUEUED;
}

/* Is there a helper for the item?  What one left behind is collected. */
static bool is_occupied(struct kt_context *ctx, struct kt_helpers *helpers,
			struct kt_item *item)
{
	if (!item->submitted)
		return false;
	if (kt_host.state(item) == KT_ITEM_DONE) {
		helpers->lent += kt_host.wait(item);
		collect_item(ctx, helpers, item);
		return false;
	}
	if (!is_starved(ctx, item) || !cancel_item(ctx, item, ctx->now_ns))
		return true;
	item->starved = true;
	return false;
}

/* May the item be submitted?  Not if a chunk failed in it: undo needs that chunk, and
 * the job ends. */
static bool is_free(struct kt_helpers *helpers, struct kt_context *ctx,
		    unsigned index)
{
	struct kt_item *item = &helpers->items[index];

	if (index >= helpers->nr_used) {
		reset_item(ctx, item, index);
		return true;
	}
	return !is_occupied(ctx, helpers, item) && !item->worker.failed;
}

/* Other threads read an item only when all of it was written. */
static void publish_item(struct kt_helpers *helpers, unsigned index)
{
	kt_store_release(&helpers->nr_used,
			 KT_MAX(helpers->nr_used, index + 1));
}

/* Cancel items beyond the wanted number: a helper would do a chunk before it left. */
static void retire_helpers(struct kt_context *ctx, unsigned from)
{
	struct kt_helpers *helpers = &ctx->helpers;

	ctx->leaving = false;
	for (unsigned i = from; i < helpers->nr_used; i++) {
		struct kt_item *item = &helpers->items[i];

		if (!item->submitted || cancel_item(ctx, item, ctx->now_ns) ||
		    kt_host.state(item) != KT_ITEM_RUNNING)
			continue;
		ctx->leaving = true;
		if (kt_host.permit_yield)
			kt_host.permit_yield(item);
	}
}

void kt_context_adjust(struct kt_context *ctx, unsigned threads)
{
	struct kt_helpers *helpers = &ctx->helpers;
	unsigned nr = 1;

	kt_assert(threads && !ctx->orphan);
	threads = KT_MIN(threads, helpers->nr + 1);
	for (; nr < threads; nr++) {
		struct kt_item *item = &helpers->items[nr - 1];

		if (!is_free(helpers, ctx, nr - 1)) {
			if (item->submitted)
				continue;
			break;
		}
		/* Helpers that have begun may finish the job before the last one is woken. */
		if (kt_job_idle(&ctx->job))
			break;
		/* Raise it before submitting: the helper compares its number with it.
		 * Never lower it meanwhile, or helpers with higher numbers would leave. */
		if (ctx->job.threads < nr + 1)
			kt_store(&ctx->job.threads, nr + 1);
		if (!submit_helper(ctx, item))
			break;
		publish_item(helpers, nr - 1);
	}
	kt_store(&ctx->job.threads, nr);
	retire_helpers(ctx, nr - 1);
}

/* ---- compensating helpers ---- */

static bool submit_compensating(struct kt_context *ctx, struct kt_item *item,
				uint32_t cpus_generation, uint64_t now_ns)
{
	init_submission(ctx, item, now_ns);
	item->cpus_generation = cpus_generation;
	item->permitted = false;
	kt_worker_begin(&item->worker, &ctx->job, KT_NO_NODE, item->index);
	item->worker.tick = kt_item_tick;
	return submit_item(item);
}

unsigned kt_context_compensate(struct kt_context *ctx, unsigned wanted,
			       uint32_t cpus_generation, uint64_t now_ns)
{
	struct kt_helpers *helpers = ctx->compensating;
	unsigned lacking = 0;

	kt_assert(!ctx->orphan);
	wanted = KT_MIN(wanted, helpers->nr);
	kt_store(&helpers->wanted, wanted);
	for (unsigned i = 0; i < wanted; i++) {
		if (!is_free(helpers, ctx, i))
			continue;
		/* Where one is refused, the others would be, too. */
		if (lacking || !submit_compensating(ctx, &helpers->items[i],
						    cpus_generation, now_ns))
			lacking++;
		else
			publish_item(helpers, i);
	}
	for (unsigned i = wanted; i < helpers->nr_used; i++)
		if (helpers->items[i].submitted)
			cancel_item(ctx, &helpers->items[i], now_ns);
	return lacking;
}

/* ---- the end, and what others see ---- */

bool kt_helpers_cancel(struct kt_context *ctx, struct kt_helpers *helpers)
{
	bool left = false;

	for (unsigned i = 0; i < helpers->nr_used; i++)
		left |= helpers->items[i].submitted &&
			!cancel_item(ctx, &helpers->items[i], ctx->now_ns);
	return left;
}

static void wait_for_item(struct kt_context *ctx, struct kt_helpers *helpers,
			  struct kt_item *item)
{
	helpers->lent += kt_host.wait(item);
	if (kt_host.state(item) == KT_ITEM_DONE)
		collect_item(ctx, helpers, item);
}

/* One at a time: exactly one thread runs at the caller's priority. */
void kt_helpers_drain(struct kt_context *ctx, struct kt_helpers *helpers)
{
	for (unsigned i = 0; i < helpers->nr_used; i++) {
		struct kt_item *item = &helpers->items[i];

		/* A helper that could not begin leaves the item queued. */
		while (item->submitted && !cancel_item(ctx, item, ctx->now_ns))
			wait_for_item(ctx, helpers, item);
	}
}

uint64_t kt_helpers_units(const struct kt_helpers *helpers)
{
	uint64_t units = kt_load(&helpers->units);

	for (unsigned i = 0; i < kt_load_acquire(&helpers->nr_used); i++)
		units += kt_load(&helpers->items[i].worker.units);
	return units;
}

bool kt_helpers_running(const struct kt_helpers *helpers)
{
	for (unsigned i = 0; i < kt_load_acquire(&helpers->nr_used); i++)
		if (kt_load(&helpers->items[i].submitted) &&
		    kt_host.state(&helpers->items[i]) == KT_ITEM_RUNNING)
			return true;
	return false;
}

static bool is_stuck(struct kt_item *item, uint64_t now_ns)
{
	uint64_t units = kt_load(&item->worker.units);

	if (!item->submitted || kt_host.state(item) != KT_ITEM_RUNNING)
		return false;
	if (!item->seen_ns || units != item->seen_units) {
		item->seen_units = units;
		item->seen_ns = now_ns;
	}
	return now_ns - item->seen_ns >= STUCK_NS;
}

bool kt_context_stuck(struct kt_context *ctx, uint64_t now_ns)
{
	bool any = false;

	for (unsigned i = 0; i < ctx->helpers.nr_used; i++)
		any |= is_stuck(&ctx->helpers.items[i], now_ns);
	return any;
}
