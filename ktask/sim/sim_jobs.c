/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Jobs of the simulated host: how one begins and ends, and which job's chunk each thread
 * is in.  See sim_host.h.
 *
 * Locking: none; see sim_host.c.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/sim_host.h"
#include "sim/sim_parts.h"
#include "sim/sim_rules.h"
#include "sim/sim_shares.h"

/* The stack of jobs whose chunk each thread is in. */
static struct context {
	struct sim_thread *thread;
	struct sim_job *job;
	struct kt_item *item; /* NULL: the caller */
	uint64_t known_ns; /* the thread reads the clock later than this */
} job_contexts[4096];
static unsigned nr_contexts;

void jobs_reset(void)
{
	nr_contexts = 0;
}

/* ---- which job a thread is in ---- */

static struct context *current_context(void)
{
	for (unsigned i = nr_contexts; i--;)
		if (job_contexts[i].thread == sim_self())
			return &job_contexts[i];
	return NULL;
}

struct sim_job *jobs_current(void)
{
	const struct context *context = current_context();

	return context ? context->job : NULL;
}

bool sim_has_permit(void)
{
	const struct context *context = current_context();

	return context && context->item && context->item->permitted;
}

void sim_chunk_begins(void)
{
	const struct context *context = current_context();
	uint64_t deadline_ns = context->job->deadline_ns;

	if (!context->item && !context->job->ctx.caller.chunks)
		rules_caller_begins(context->job);
	if (deadline_ns && context->known_ns >= deadline_ns &&
	    !sim_clocks_differ())
		sim_fail("a chunk begins %llu ns after the deadline",
			 (unsigned long long)(context->known_ns - deadline_ns));
}

void sim_chunk_ends(bool done)
{
	struct context *context = current_context();

	context->known_ns = kt_now_ns();
	if (done && context->item)
		context->item->host.worked = true;
	else if (done)
		context->job->caller_worked = true;
}

void jobs_enter(struct sim_job *job, struct kt_item *item)
{
	if (nr_contexts == sizeof(job_contexts) / sizeof(*job_contexts))
		abort();
	job_contexts[nr_contexts++] =
		(struct context){ sim_self(), job, item, kt_now_ns() };
}

void jobs_leave(void)
{
	unsigned i = nr_contexts;

	while (job_contexts[--i].thread != sim_self())
		;
	memmove(&job_contexts[i], &job_contexts[i + 1],
		(nr_contexts-- - i - 1) * sizeof(*job_contexts));
}

/* Items hold what another job left: the engine must reset them. */
void jobs_make_items(struct sim_job *job, unsigned nr)
{
	job->ctx.helpers.nr = KT_MIN(job->max_items, nr);
	memset(job->items, job->max_threads % 2 ? 0xa5 : 0,
	       job->ctx.helpers.nr * sizeof(*job->items));
	for (unsigned i = 0; i < job->ctx.helpers.nr; i++) {
		job->items[i].host = (struct kt_host_item){ .node = -1 };
	}
}

/* ---- jobs ---- */

void sim_job_begin(struct sim_job *job, unsigned max_threads,
		   uint64_t timeout_ns)
{
	struct kt_context *ctx = &job->ctx;

	job->outer = ctx->detached ? NULL : jobs_current();
	job->entry = -1;
	job->adjusted = 0;
	job->nr_yielded = 0;
	job->nr_starved = 0;
	job->caller_worked = false;
	job->max_threads = max_threads;
	job->grown = false;
	job->alone =
		!ctx->detached && max_threads > 1 && shares_overload_begins();
	ctx->may_grow = job->alone;
	max_threads = kt_context_size(ctx, job->alone ? 1 : max_threads,
				      job->outer ? &job->outer->ctx : NULL,
				      timeout_ns);
	job->deadline_ns = timeout_ns ? ctx->start_ns + timeout_ns : 0;
	rules_begin(job);
	ctx->caller.tick = rules_tick_caller;
	ctx->helpers.items = job->items;
	ctx->cpus_generation = host_moves();
	jobs_make_items(job, max_threads - 1);
	kt_context_begin(ctx);
	rules_settled(job);
}

void sim_job_resubmit(struct sim_job *job)
{
	kt_context_resubmit(&job->ctx, kt_now_ns());
	rules_settled(job);
}

int sim_job_finish(struct sim_job *job)
{
	int error;

	jobs_enter(job, NULL);
	kt_context_work(&job->ctx);
	jobs_leave();
	error = kt_context_end(&job->ctx);
	sim_trace("job ends with %d, %u threads", error, job->ctx.threads);
	return error;
}

int sim_job_run(struct sim_job *job, unsigned max_threads, uint64_t timeout_ns)
{
	sim_job_begin(job, max_threads, timeout_ns);
	return sim_job_finish(job);
}

void sim_job_check_over(const struct sim_job *job)
{
	const struct sim_process *process = job->process;
	const struct kt_helpers *others = job->ctx.compensating;

	if (!job->outer && job->ctx.own_budget.used)
		sim_fail("a budget of which %u are still taken",
			 job->ctx.own_budget.used);
	if (job->ctx.orphan)
		return;
	for (unsigned i = 0; i < process->nr_helpers; i++)
		if (process->helpers[i].item &&
		    process->helpers[i].item->ctx == &job->ctx)
			sim_fail("%s still has an item of a job that is over",
				 sim_name(process->helpers[i].thread));
	for (unsigned i = 0; others && i < others->nr_used; i++)
		if (others->items[i].submitted)
			sim_fail("compensating item %u is lost", i);
	for (unsigned i = 0; i < job->ctx.helpers.nr_used; i++)
		if (job->items[i].submitted || job->items[i].host.permits)
			sim_fail("item %u is lost: submitted %u, permits %u", i,
				 job->items[i].submitted,
				 job->items[i].host.permits);
}
