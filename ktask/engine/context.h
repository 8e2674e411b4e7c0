/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The job context: one job from its first helper to its result.
 *
 * The host owns the memory: the context, the ranges of its job, and the work
 * items.  It calls, in this order,
 *
 *	kt_context_init()	reset; then the host may change the defaults
 *	kt_context_size()	clocks, budget, the threads that the job is worth
 *	kt_context_begin()	submit the first helpers
 *	kt_context_work()	the calling thread takes chunks
 *	kt_context_end()	collect the helpers, undo, count
 *
 * One thread calls the first three.  The caller calls the last two; it is the same
 * thread unless the job was detached.  Until a detached job has a caller, another thread
 * may call kt_context_resubmit().
 *
 * Locking: there is no lock.  Each field says who writes it:
 *
 *	I: set before kt_context_begin(), constant from then on
 *	C: the caller; for a detached job the starting thread, until it has a caller
 *	M: the manager of the group: the caller; for ctx->compensating the host's
 *	   concurrency manager until that has left, then the caller
 *	H: the helper that runs the item, until its state is KT_ITEM_DONE
 *	A: written by one, read by any thread: kt_load() and kt_store()
 */
#ifndef KTASK_ENGINE_CONTEXT_H
#define KTASK_ENGINE_CONTEXT_H

#include "core/caps.h"
#include "core/job.h"
#include "core/tune.h"
#include "engine/host.h"

/*
 * How often the caller ticks and refreshes, between its chunks.  Both intervals begin
 * short and grow as the job lasts.
 */
struct kt_pace {
	uint64_t tick_first_ns; /* the first interval between two ticks, */
	uint64_t tick_ns; /* and the longest */
	uint64_t refresh_ns; /* the interval between two refreshes */
	uint64_t refresh_soon_first_ns; /* the same while helpers are */
	uint64_t refresh_soon_ns; /* lacking: the first and the longest */
	uint64_t refresh_first_ns; /* from the beginning to the first refresh */
};

struct kt_helpers;

/* What a host runs a helper for. */
struct kt_item {
	struct kt_host_item host;
	struct kt_worker worker; /* H */
	struct kt_context *ctx;
	unsigned index; /* in its group; M */
	unsigned range; /* that it was dealt; M */
	int node; /* id of the node it is bound to, or KT_NO_NODE; M */
	uint32_t cpus_generation; /* of ctx, when submitted; M */
	uint32_t submitted; /* and not collected; M, A */
	bool permitted; /* holds permits and a part of the budget; M */
	bool preferred; /* host: submitted for preferred CPUs only; M */
	bool starved; /* nobody took it from these in time; M */
	bool counted; /* among the threads that did a chunk; M */
	uint64_t submitted_ns; /* M */
	uint64_t seen_units, seen_ns; /* of the worker; M */
	uint64_t cpu_ns; /* H */
};

/* Helpers that were submitted for one reason. */
struct kt_helpers {
	struct kt_item *items; /* I */
	unsigned nr; /* that there are; I */
	uint32_t nr_used; /* items [0, nr_used) were submitted once; M, A */
	uint32_t wanted; /* of compensating helpers: above this they leave; A */

	/* Of helpers that have left; M. */
	uint64_t chunks, units, cpu_ns; /* units: A */
	uint64_t largest_chunk; /* units */
	unsigned threads, lent;
};

struct kt_context {
	struct kt_job job;
	const struct kt_pace *pace; /* I */
	struct kt_helpers helpers;
	struct kt_helpers *compensating; /* for blocked threads, or NULL; A */

	/* The host may set these after kt_context_init(). */
	bool fixed; /* as many threads as are allowed, not as many as pay; I */
	bool measure_cpu; /* I */
	bool interruptible; /* caller.tick may stop the job, helped or not; I */
	uint32_t detached; /* A */
	bool may_grow; /* begins alone: kt_context_grow() may follow; C */
	uint64_t progress_ns; /* between two calls of progress; I */
	/* Reports to the client; a result other than 0 cancels the job.  May be NULL. */
	int (*progress)(struct kt_context *ctx, bool last);
	/* Counts changes by the jobs that share the machine.  May be NULL. */
	const uint32_t *changes; /* C */

	struct kt_worker caller; /* C */
	struct kt_cap *budget; /* of this job, or of the outermost around it */
	struct kt_cap own_budget;
	uint32_t orphan; /* the child of a fork: its helpers do not exist */
	uint32_t cpus_generation; /* counts changes of helpers' CPUs; C, A */

	struct kt_tune tune; /* C */
	unsigned wanted; /* threads that pay; C */
	bool ramping; /* chunks are short until the ramp has ended; C */
	uint64_t target_ns; /* of chunks, behind it; C */
	bool leaving; /* a helper shall leave and has not; C */
	bool placed; /* the caller has its first range; C */
	uint32_t changes_seen;
	uint64_t now_ns; /* of the last refresh, about; C */
	uint64_t next_tick_ns, next_refresh_ns, soon_refresh_ns; /* C */
	uint64_t next_progress_ns; /* C */
	uint64_t until_ns; /* then the threads that are allowed change; C */

	uint64_t start_ns, work_end_ns, end_ns;
	uint64_t caller_cpu_ns;
	uint64_t units_total; /* I */
	int error; /* of the job, from KT_STAGE_ENDED on */

	/* Sums over the caller and all helpers, from KT_STAGE_ENDED on. */
	uint64_t chunks, units, helper_cpu_ns;
	uint64_t largest_chunk; /* units */
	unsigned threads, lent;
};

/*
 * kt_context_init - reset a context whose job has its function and ranges
 *
 * Return: 0, or -EINVAL as kt_job_check() says.
 */
int kt_context_init(struct kt_context *ctx, const struct kt_pace *pace);

/*
 * kt_context_size - start the clocks, and find how many threads are worth it
 * @max: threads that policy and client allow, at least 1
 * @parent: the job whose chunk the calling thread is in and from whose budget the
 *	helpers shall come, or NULL
 * @timeout_ns: 0 for none
 *
 * The host then provides ctx->helpers.items: one less than this, or fewer if it has no
 * memory.  It may tell ctx->tune a count that was measured before.
 *
 * Return: threads, 1 to @max.
 */
unsigned kt_context_size(struct kt_context *ctx, unsigned max,
			 const struct kt_context *parent, uint64_t timeout_ns);

/* kt_context_begin - submit the first helpers */
void kt_context_begin(struct kt_context *ctx);

/*
 * kt_context_grow - let a job that began with a single thread have helpers
 * @max: threads that policy and client allow now, at least 1
 *
 * Called by the caller, in allowed_threads() of a job with may_grow.  The host provides
 * items as after kt_context_size(), and sets ctx->wanted to ctx->tune.threads.
 *
 * Return: threads, 1 to @max.
 */
unsigned kt_context_grow(struct kt_context *ctx, unsigned max);

/* kt_context_refresh - ask anew what is allowed, and act on it; by the caller */
void kt_context_refresh(struct kt_context *ctx, uint64_t now_ns);

/*
 * kt_context_resubmit - submit missing helpers of a detached job once more
 *
 * One thread at a time calls this in place of the caller, until the job has a caller.
 * The job keeps the helpers that it has.
 *
 * Return: false if helpers are still missing.
 */
bool kt_context_resubmit(struct kt_context *ctx, uint64_t now_ns);

/* kt_context_tick - worker.tick of the caller, called between two chunks.  If the host has
 * a tick function of its own, that calls this. */
bool kt_context_tick(struct kt_worker *worker, uint64_t now_ns);

/* kt_context_work - the calling thread takes chunks until none is left */
void kt_context_work(struct kt_context *ctx);

/*
 * kt_context_end - wait for helpers, undo what was done if the job failed, sum up
 *
 * Only helpers that have begun are waited for.
 *
 * Return: 0 or the job's first error.
 */
int kt_context_end(struct kt_context *ctx);

/*
 * kt_context_orphan - stop a job in the child of a fork
 *
 * Its helpers and their chunks are in the parent, so the job cannot be completed here.
 * Undo would change memory that the parent shares.
 */
void kt_context_orphan(struct kt_context *ctx);

/* kt_context_units - done so far, at most units_total; any thread */
uint64_t kt_context_units(const struct kt_context *ctx);

/* kt_context_settled - nothing is left to claim and no helper is in a chunk;
 * any thread */
bool kt_context_settled(const struct kt_context *ctx);

/* kt_context_stuck - is a helper in a chunk that does not seem to end?  By the caller, at
 * refreshes. */
bool kt_context_stuck(struct kt_context *ctx, uint64_t now_ns);

/* kt_context_worker_at - the workers: 0 the caller, then all items */
static inline unsigned kt_context_nr_workers(const struct kt_context *ctx)
{
	return 1 + ctx->helpers.nr_used +
	       (ctx->compensating ? ctx->compensating->nr_used : 0);
}

const struct kt_worker *kt_context_worker_at(void *ctx, unsigned index);

/* kt_context_adjust - make @threads work on the job, or as many as are available; by the
 * caller */
void kt_context_adjust(struct kt_context *ctx, unsigned threads);

/*
 * kt_context_compensate - keep @wanted compensating helpers
 *
 * Called by the host's manager.  These helpers hold no permit, because each runs in
 * place of a thread that is blocked.  @cpus_generation is what ctx->cpus_generation was
 * when the host chose the CPUs for them.
 *
 * Return: how many could not be submitted.
 */
unsigned kt_context_compensate(struct kt_context *ctx, unsigned wanted,
			       uint32_t cpus_generation, uint64_t now_ns);

/*
 * kt_item_redeal - let the helper begin with a range of node @id, or of the nearest
 * node, instead of the one to which it was dealt; called by the host, in permit_get
 */
void kt_item_redeal(struct kt_item *item, int id);

/* ---- for helpers ---- */

/* kt_item_tick - between two chunks: shall this helper leave? */
bool kt_item_tick(struct kt_worker *worker, uint64_t now_ns);

/* kt_item_work - take chunks; the host's thread that runs @item */
void kt_item_work(struct kt_item *item);

/* kt_item_release - give the permits back; a helper's last access to the item.  Not in the
 * child of a fork, because the permits are the parent's. */
void kt_item_release(struct kt_item *item);

static inline struct kt_item *kt_item_of(struct kt_worker *worker)
{
	return (struct kt_item *)((char *)worker -
				  offsetof(struct kt_item, worker));
}

/* The host's functions may look into all of the above. */
#ifdef KT_HOST_BOUND
#include "ktask_ops.h"
#endif

#endif /* KTASK_ENGINE_CONTEXT_H */
