/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See sim_rules.h.  Memory is read without kt_load(): a check is no point at which
 * another thread may run, and so sees one moment.
 *
 * Does not judge what a helper decides while the number of threads is being changed.
 */
#include "sim/sim_rules.h"

/* The engine's promise: so long may an item wait for preferred CPUs. */
#define PREFERRED_NS 3000000
/* A helper that gets no CPU for this long is stuck. */
#define STUCK_NS 20000000
/* About what it costs to choose CPUs for compensating helpers. */
#define CHOOSE_NS 3000

static struct sim_job *job_of(const struct kt_item *item)
{
	return (struct sim_job *)item->ctx;
}

static enum kt_item_state state_now(const struct kt_item *item)
{
	const struct sim_helper *helper = item->host.helper;

	if (!helper || helper->ticket != item->host.ticket)
		return KT_ITEM_DONE;
	return helper->state;
}

/* It found no permit once: it may have gone from one state to another and back. */
static bool has_declined(const struct kt_item *item)
{
	return item->host.helper && item->host.helper->declined;
}

static bool has_work(const struct kt_job *job)
{
	if (job->error)
		return false;
	for (unsigned i = 0; i < job->nr_ranges; i++)
		if (job->ranges[i].next < job->ranges[i].units)
			return true;
	return false;
}

void rules_begin(struct sim_job *job)
{
	const struct kt_context *ctx = &job->ctx;
	uint64_t nr_chunks = ctx->units_total / ctx->job.split.min_chunk;

	job->rules = (struct sim_rules){
		.until_ns = UINT64_MAX,
		.refreshed_ns = ctx->start_ns,
		.reported_ns = ctx->start_ns - ctx->progress_ns,
	};
	if (ctx->tune.max > KT_MAX(nr_chunks, 1))
		sim_fail("a job of %llu chunks wants %u threads",
			 (unsigned long long)nr_chunks, ctx->tune.max);
	if (ctx->tune.chunk != ctx->job.split.min_chunk)
		sim_fail("a job does not know its chunks");
}

/* ---- what the host answers, and what follows ---- */

void rules_answered(struct sim_job *job, unsigned threads, uint64_t until_ns)
{
	struct sim_rules *rules = &job->rules;

	rules->nr_answers++;
	rules->answer = threads;
	rules->answer_until_ns = until_ns;
	rules->changes = job->ctx.changes ? *job->ctx.changes : 0;
	rules->adjusting = true;
}

void rules_settled(struct sim_job *job)
{
	const struct kt_context *ctx = &job->ctx;

	job->rules.adjusting = false;
	job->rules.caller_node = ctx->caller.node;
	job->rules.soon = ctx->helpers.nr && ctx->job.threads < ctx->wanted;
	if (ctx->job.split.min_chunk == UINT64_MAX &&
	    (ctx->detached || ctx->progress || ctx->job.deadline_ns))
		sim_fail("a job in one chunk cannot be stopped");
}

static void check_wanted(const struct sim_job *job, const struct kt_item *item)
{
	uint64_t ns = job->ctx.now_ns - item->host.submitted_ns;

	if (item->preferred && ns >= PREFERRED_NS &&
	    state_now(item) == KT_ITEM_QUEUED && !has_declined(item))
		sim_fail("item %u is kept for preferred CPUs for %llu ns",
			 item->index, (unsigned long long)ns);
}

/* Return: true if its helper is in a chunk that nobody waits for. */
static bool check_unwanted(const struct sim_job *job,
			   const struct kt_item *item)
{
	enum kt_item_state state = state_now(item);

	if (has_declined(item))
		return false;
	if (state == KT_ITEM_QUEUED)
		sim_fail("item %u is queued, and nobody wants it", item->index);
	if (state == KT_ITEM_RUNNING &&
	    item->host.asked != job->rules.nr_answers)
		sim_fail("item %u is not wanted, and not asked to yield",
			 item->index);
	return state == KT_ITEM_RUNNING;
}

static void check_items(struct sim_job *job)
{
	const struct kt_context *ctx = &job->ctx;
	bool leaving = false;

	for (unsigned i = 0; i < ctx->helpers.nr_used; i++) {
		const struct kt_item *item = &ctx->helpers.items[i];

		if (!item->submitted)
			continue;
		if (i + 2 <= ctx->job.threads)
			check_wanted(job, item);
		else
			leaving |= check_unwanted(job, item);
	}
	job->rules.soon = leaving || ctx->job.threads < ctx->wanted;
}

/* Threads are dealt over ranges: helpers, and the caller where it may choose. */
static void check_dealt(const struct sim_job *job)
{
	const struct kt_context *ctx = &job->ctx;
	bool counted = job->rules.caller_node != KT_NO_NODE || job->grown;
	unsigned nr = ctx->job.nr_ranges > 1 && counted, dealt = 0;

	for (unsigned i = 0; i < ctx->helpers.nr_used; i++)
		nr += ctx->helpers.items[i].submitted;
	for (unsigned i = 0; i < ctx->job.nr_ranges; i++)
		dealt += ctx->job.ranges[i].dealt;
	if (dealt != nr)
		sim_fail("%u threads are dealt over ranges, %u are there",
			 dealt, nr);
}

void rules_adjusted(struct sim_job *job)
{
	struct sim_rules *rules = &job->rules;
	const struct kt_context *ctx = &job->ctx;

	rules->adjusting = false;
	rules->refreshed_ns = ctx->now_ns;
	rules->until_ns = rules->answer_until_ns;
	/* Their manager measures the rate: one of the two may. */
	if (ctx->compensating && !ctx->fixed && ctx->wanted != ctx->tune.max)
		sim_fail("a job adapts beside its manager: %u of %u threads",
			 ctx->wanted, ctx->tune.max);
	if (ctx->fixed && ctx->wanted != ctx->tune.max)
		sim_fail("a job of fixed threads adapts: %u of %u", ctx->wanted,
			 ctx->tune.max);
	/* There was some before, too. */
	if (!has_work(&ctx->job))
		return;
	if (ctx->job.threads > rules->answer)
		sim_fail("a job has %u threads, %u are allowed",
			 ctx->job.threads, rules->answer);
	check_items(job);
	if (ctx->helpers.nr)
		check_dealt(job);
}

/* ---- nodes ---- */

/* Return: the range is there, of that node, and nobody took a chunk of it. */
static bool is_untouched(const struct kt_range *range, int node)
{
	return range->node == node && range->units && !range->next;
}

/* In its first chunk. */
void rules_caller_begins(const struct sim_job *job)
{
	const struct kt_context *ctx = &job->ctx;
	const struct kt_range *ranges = ctx->job.ranges;
	int node = ctx->caller.node, placed = job->rules.caller_node;

	if (ctx->job.nr_ranges < 2)
		return;
	if (node == KT_NO_NODE || (placed != KT_NO_NODE && node != placed))
		sim_fail("a caller of node %d works as one of node %d", placed,
			 node);
	for (unsigned i = 0; i < ctx->job.nr_ranges; i++)
		if (is_untouched(&ranges[i], node) &&
		    ranges[ctx->caller.range].node != node)
			sim_fail("a caller of node %d begins on node %d", node,
				 ranges[ctx->caller.range].node);
}

void rules_serves(struct sim_job *job, unsigned range, unsigned turn)
{
	job->rules.served_range = range;
	job->rules.turn = turn;
}

void rules_permit(const struct kt_item *item)
{
	const struct sim_rules *rules = &job_of(item)->rules;

	if (rules->turn != item->index)
		sim_fail("item %u has the turn of item %u", item->index,
			 rules->turn);
	if (rules->served_range != item->range)
		sim_fail("item %u is for range %u, the node of range %u "
			 "serves it",
			 item->index, item->range, rules->served_range);
}

/* The ranges of @node with something left.  Return: how many. */
static unsigned find_homes(const struct kt_job *job, int node, unsigned *homes)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < job->nr_ranges; i++)
		if (job->ranges[i].node == node &&
		    job->ranges[i].next < job->ranges[i].units)
			homes[nr++] = i;
	return nr;
}

/* Others take chunks meanwhile: if a range was used up nothing is said. */
void rules_redealt(struct kt_item *item, int node)
{
	const struct kt_job *job = &item->ctx->job;
	unsigned homes[SIM_RANGES_MAX], nr = find_homes(job, node, homes);

	kt_item_redeal(item, node);
	if (nr && find_homes(job, node, homes) == nr &&
	    item->range != homes[(item->index + 1) % nr])
		sim_fail("the helper of item %u begins with range %u, not %u",
			 item->index, item->range,
			 homes[(item->index + 1) % nr]);
}

/* ---- items ---- */

void rules_submitted(struct kt_item *item)
{
	struct sim_job *job = job_of(item);
	struct kt_host_item *host = &item->host;

	if (item->starved && !host->starved)
		sim_fail("item %u starved, it is said", item->index);
	if (host->starved && host->starved == job->rules.nr_answers) {
		if (!item->starved)
			sim_fail("item %u starved, and may do so again",
				 item->index);
		job->nr_starved++;
	}
	host->generation = item->permitted ? job->ctx.cpus_generation
					   : job->rules.others_generation;
	host->submitted_ns = job->ctx.now_ns;
	host->asked = 0;
	host->shared = false;
	host->yielded = false;
	host->seen_cpu_ns = UINT64_MAX;
}

/* If the same refresh submits it again, this was because it starved. */
void rules_cancelled(struct kt_item *item)
{
	const struct sim_job *job = job_of(item);

	if (item->preferred &&
	    job->ctx.now_ns - item->host.submitted_ns >= PREFERRED_NS)
		item->host.starved = job->rules.nr_answers;
}

void rules_yields(struct kt_item *item)
{
	const struct sim_job *job = job_of(item);

	if (item->index + 2 <= job->ctx.job.threads)
		sim_fail("item %u shall yield its permit, and is wanted",
			 item->index);
	item->host.asked = job->rules.nr_answers;
}

/* At the end all are cancelled before one is waited for, lest more begin. */
void rules_waits(const struct kt_item *item)
{
	const struct kt_helpers *helpers = &item->ctx->helpers;

	for (unsigned i = 0; i < helpers->nr_used; i++) {
		const struct kt_item *other = &helpers->items[i];

		if (job_of(item)->rules.draining && other->submitted &&
		    state_now(other) == KT_ITEM_QUEUED && !has_declined(other))
			sim_fail(
				"item %u is queued while item %u is waited for",
				i, item->index);
	}
}

void rules_stuck(const struct sim_job *job, uint64_t now_ns)
{
	const struct kt_helpers *helpers = &job->ctx.helpers;
	bool found = sim_clocks_differ();

	for (unsigned i = 0; i < helpers->nr_used; i++)
		found |= helpers->items[i].submitted &&
			 now_ns - helpers->items[i].host.begun_ns >= STUCK_NS;
	if (!found)
		sim_fail("a helper gets no CPU, it is said");
}

static unsigned nr_worked(const struct kt_helpers *helpers)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < helpers->nr_used; i++)
		nr += helpers->items[i].host.worked;
	return nr;
}

unsigned rules_threads(const struct sim_job *job)
{
	const struct kt_helpers *others = job->ctx.compensating;

	return job->caller_worked + nr_worked(&job->ctx.helpers) +
	       (others ? nr_worked(others) : 0);
}

/* ---- compensating helpers ---- */

static void check_others(const struct kt_helpers *helpers, unsigned wanted,
			 unsigned lacking)
{
	unsigned nr = 0;

	if (helpers->wanted != wanted)
		sim_fail("%u compensating helpers may stay, %u are wanted",
			 helpers->wanted, wanted);
	for (unsigned i = 0; i < wanted; i++) {
		const struct kt_item *item = &helpers->items[i];

		nr += i >= helpers->nr_used ||
		      (!item->submitted && !item->worker.failed);
	}
	if (nr != lacking)
		sim_fail("%u compensating helpers are lacking, not %u", nr,
			 lacking);
	for (unsigned i = wanted; i < helpers->nr_used; i++)
		if (helpers->items[i].submitted &&
		    state_now(&helpers->items[i]) == KT_ITEM_QUEUED)
			sim_fail("compensating item %u is queued, %u are "
				 "wanted",
				 i, wanted);
}

void rules_compensate(struct sim_job *job, unsigned wanted)
{
	struct sim_rules *rules = &job->rules;
	struct kt_context *ctx = &job->ctx;
	unsigned lacking;

	rules->others_generation = kt_load(&ctx->cpus_generation);
	sim_spend(sim_random(CHOOSE_NS));
	rules->nr_others++;
	lacking = kt_context_compensate(ctx, wanted, rules->others_generation,
					kt_now_ns());
	check_others(ctx->compensating, KT_MIN(wanted, ctx->compensating->nr),
		     lacking);
}

/* ---- ticks ---- */

static bool must_leave(const struct kt_item *item)
{
	const struct kt_context *ctx = item->ctx;

	if (item->host.generation != ctx->cpus_generation)
		return true;
	if (item->permitted)
		return item->index + 2 > ctx->job.threads;
	return item->index >= ctx->compensating->wanted;
}

/* Changes whenever what must_leave() reads may change more than once. */
static unsigned moment_of(const struct kt_item *item)
{
	const struct sim_rules *rules = &job_of(item)->rules;

	return item->permitted ? rules->nr_answers : rules->nr_others;
}

static bool is_settled(const struct kt_item *item)
{
	return !item->permitted || !job_of(item)->rules.adjusting;
}

bool rules_tick_helper(struct kt_worker *worker, uint64_t now_ns)
{
	struct kt_item *item = kt_item_of(worker);
	bool settled = is_settled(item), before = must_leave(item);
	unsigned moment = moment_of(item);
	bool leaves = kt_item_tick(worker, now_ns);

	if (settled && is_settled(item) && moment == moment_of(item) &&
	    before == must_leave(item) && leaves != before)
		sim_fail("the helper of item %u %s", item->index,
			 before ? "stays, and must leave"
				: "leaves, and is wanted");
	return leaves || item->host.yielded;
}

static bool is_refresh_due(const struct sim_job *job, uint64_t now_ns)
{
	const struct kt_pace *pace = job->ctx.pace;
	const struct sim_rules *rules = &job->rules;
	const uint32_t *changes = job->ctx.changes;
	uint64_t longest_ns = KT_MAX(pace->refresh_ns, pace->refresh_first_ns);

	if (now_ns >= rules->until_ns ||
	    now_ns >= rules->refreshed_ns + longest_ns)
		return true;
	return now_ns >= rules->refreshed_ns + pace->refresh_soon_ns &&
	       (rules->soon || (changes && *changes != rules->changes));
}

static void check_tick(const struct sim_job *job, uint64_t now_ns)
{
	const struct kt_context *ctx = &job->ctx;
	const struct sim_rules *rules = &job->rules;

	if (ctx->next_tick_ns > now_ns + ctx->pace->tick_ns)
		sim_fail("the next tick is %llu ns away",
			 (unsigned long long)(ctx->next_tick_ns - now_ns));
	if (ctx->progress && rules->reported_ns != now_ns &&
	    now_ns >= rules->reported_ns + ctx->progress_ns)
		sim_fail("progress is not reported for %llu ns",
			 (unsigned long long)(now_ns - rules->reported_ns));
}

bool rules_tick_caller(struct kt_worker *worker, uint64_t now_ns)
{
	struct sim_job *job =
		(struct sim_job *)((char *)worker -
				   offsetof(struct sim_job, ctx.caller));
	bool ticks = now_ns >= job->ctx.next_tick_ns;
	bool due = ticks && is_refresh_due(job, now_ns);
	unsigned nr_answers = job->rules.nr_answers;
	bool leaves;

	job->rules.tick_ns = now_ns;
	leaves = kt_context_tick(worker, now_ns);
	if (due && job->rules.nr_answers == nr_answers)
		sim_fail("limits have changed, and are not read again");
	if (ticks)
		check_tick(job, now_ns);
	return leaves;
}

void rules_reported(struct sim_job *job, bool last)
{
	struct sim_rules *rules = &job->rules;

	if (rules->ended)
		sim_fail("progress is reported after the end");
	if (!last && rules->tick_ns < rules->reported_ns + job->ctx.progress_ns)
		sim_fail("progress is reported %llu ns after it was",
			 (unsigned long long)(rules->tick_ns -
					      rules->reported_ns));
	rules->reported_ns = rules->tick_ns;
	rules->ended = last;
}
