/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The simulated host: its clocks, and the operations of engine/host.h.  See sim_host.h;
 * helpers are in sim_helpers.c, jobs in sim_jobs.c.  Between two points (sim_point())
 * nobody else runs, so what is atomic on a real host needs nothing here.
 *
 * Locking: none; kt_store() is there for the schedules, to have a point at which others run.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/sim_host.h"
#include "sim/sim_parts.h"
#include "sim/sim_rules.h"
#include "sim/sim_shares.h"

/* As in user/: a caller spins so long for the end of a chunk before it lends its
 * priority. */
#define WAIT_SPIN_NS 20000
/* A job that began alone finds out so often whether it may have helpers. */
#define ALONE_NS 5000000
/* About what it costs to submit an item. */
#define SUBMIT_NS 1500

static struct {
	uint32_t moves;
	uint64_t skew_ns;
	int64_t jump_ns;
} sim_host;

bool sim_traced;

void sim_trace(const char *format, ...)
{
	va_list args;

	if (!sim_traced)
		return;
	fprintf(stderr, "# %12.6f ms cpu %2u %-12s ",
		(double)(sim_now() - SIM_START_NS) / 1e6, sim_cpu(),
		sim_name(sim_self()));
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ---- what core/ needs ---- */

void sim_broken(const char *rule, const char *file, int line)
{
	sim_fail("%s:%d: broken: %s", file, line, rule);
}

uint64_t kt_now_ns(void)
{
	uint64_t skew =
		sim_host.skew_ns ? sim_cpu() * 7919 % sim_host.skew_ns : 0;

	return sim_now() + skew + (uint64_t)sim_host.jump_ns;
}

unsigned kt_node_distance(int a, int b)
{
	return a == b ? 10 : 20 + (unsigned)(a ^ b) % 4;
}

void kt_iter_lock(kt_iter_lock_t *lock)
{
	while (lock->held)
		sim_block(1000);
	lock->held = true;
}

void kt_iter_unlock(kt_iter_lock_t *lock)
{
	lock->held = false;
}

/* ---- the machine ---- */

void sim_host_reset(unsigned permits)
{
	memset(&sim_host, 0, sizeof(sim_host));
	helpers_reset(permits);
	shares_reset(permits);
	jobs_reset();
}

void sim_host_clocks(uint64_t skew_ns)
{
	sim_host.skew_ns = skew_ns;
}

void sim_host_jump(int64_t ns)
{
	sim_trace("clocks: %+lld ns", (long long)ns);
	sim_host.jump_ns += ns;
}

void sim_host_moved(void)
{
	sim_host.moves++;
}

bool sim_clocks_differ(void)
{
	return sim_host.skew_ns || sim_host.jump_ns;
}

uint32_t host_moves(void)
{
	return sim_host.moves;
}

/* ---- the host operations ---- */

static bool is_current(const struct kt_item *item)
{
	const struct sim_helper *helper = item->host.helper;

	return helper->ticket == item->host.ticket;
}

static void keep_one_cpu(struct sim_cpus *cpus)
{
	unsigned nr = sim_machine()->nr_cpus, start = (unsigned)sim_random(nr);
	bool found = false;

	for (unsigned i = 0; i < nr; i++) {
		unsigned cpu = (start + i) % nr;

		if (found || !sim_is_online(cpu))
			sim_take_out(cpus, cpu);
		found |= sim_in(cpus, cpu);
	}
}

/* As a host does that knows of siblings or slow CPUs. */
static bool prefers_cpus(const struct kt_item *item)
{
	unsigned one_in =
		((struct sim_job *)item->ctx)->process->preferred_one_in;

	return item->permitted && !item->starved && one_in &&
	       !sim_random(one_in);
}

static void place_helper(struct sim_helper *helper, const struct kt_item *item)
{
	const struct sim_process *process = helper->process;
	struct sim_cpus cpus = process->cpus;
	bool any = false;

	for (unsigned i = 0; i < sim_machine()->nr_cpus; i++) {
		if (item->host.node >= 0 &&
		    sim_node_of(i) != (unsigned)item->host.node)
			sim_take_out(&cpus, i);
	}
	/* The caller's CPU is busy. */
	if (sim_self())
		sim_take_out(&cpus, sim_cpu());
	if (item->preferred)
		keep_one_cpu(&cpus);
	for (unsigned i = 0; i < sim_machine()->nr_cpus; i++)
		any |= sim_in(&cpus, i) && sim_is_online(i);
	sim_set_cpus(helper->thread, any ? &cpus : &process->cpus);
}

static bool submit_item(struct kt_item *item)
{
	struct sim_job *job = (struct sim_job *)item->ctx;
	struct sim_process *process = job->process;
	unsigned nr = process->nr_helpers;
	unsigned start = nr ? (unsigned)sim_random(nr) : 0;

	rules_submitted(item);
	item->worker.tick = rules_tick_helper;
	item->preferred = prefers_cpus(item);
	if (!item->permitted)
		item->host.node = -1;
	else if (job->ctx.job.threads < job->adjusted)
		sim_fail("helpers are told to leave by %u threads after %u",
			 job->ctx.job.threads, job->adjusted);
	sim_point();
	for (unsigned i = 0; i < nr; i++) {
		struct sim_helper *helper = &process->helpers[(start + i) % nr];

		if (helper->state != KT_ITEM_DONE || helper->item)
			continue;
		helper->item = item;
		helper->ticket++;
		item->host.helper = helper;
		item->host.ticket = helper->ticket;
		sim_trace("submits item %u to %s", item->index,
			  sim_name(helper->thread));
		place_helper(helper, item);
		helper->declined = false;
		helper->waiter = NULL;
		helper->state = KT_ITEM_QUEUED;
		if (!helper->never)
			sim_wake(helper->thread);
		sim_spend(sim_random(2 * SUBMIT_NS));
		return true;
	}
	return false;
}

static enum kt_item_state item_state(const struct kt_item *item)
{
	sim_point();
	if (!item->host.helper || !is_current(item))
		return KT_ITEM_DONE;
	return item->host.helper->state;
}

static bool cancel_item(struct kt_item *item, uint64_t now_ns)
{
	struct sim_helper *helper = item->host.helper;

	sim_point();
	if (!is_current(item) || helper->state != KT_ITEM_QUEUED)
		return false;
	sim_trace("cancels item %u", item->index);
	rules_cancelled(item);
	helper->state = KT_ITEM_DONE;
	helper->item = NULL;
	helper->ticket++;
	return true;
}

static bool wait_for_helper(struct kt_item *item)
{
	struct sim_helper *helper = item->host.helper;
	uint64_t until_ns = sim_now() + WAIT_SPIN_NS;
	bool lent = false;

	rules_waits(item);
	sim_point();
	if (!is_current(item) || helper->state == KT_ITEM_DONE)
		return false;
	if (helper->state == KT_ITEM_QUEUED && !helper->declined)
		sim_fail("%s waits for item %u, which no helper has begun",
			 sim_name(sim_self()), item->index);
	/* It could not begin, and the engine may only now learn it. */
	if (helper->state == KT_ITEM_QUEUED)
		sim_spend(1000);
	while (item_state(item) == KT_ITEM_RUNNING && sim_now() < until_ns)
		sim_spend(100);
	while (item_state(item) == KT_ITEM_RUNNING) {
		unsigned weight = sim_weight(sim_self());

		if (sim_weight(helper->thread) < weight) {
			sim_trace("lends to %s", sim_name(helper->thread));
			lent = true;
			sim_set_weight(helper->thread, weight);
		}
		sim_set_cpus(helper->thread, &helper->process->cpus);
		helper->waiter = sim_self();
		sim_block(5000000);
		helper->waiter = NULL;
	}
	return lent;
}

static bool node_has_permit(struct kt_context *ctx, int id)
{
	const struct sim_process *process = ((struct sim_job *)ctx)->process;

	sim_point();
	return id < 0 || process->nodes[id].used < process->nodes[id].limit;
}

/* As a host does that finds the CPUs of @node busy. */
static int choose_node(const struct sim_process *process, int node)
{
	unsigned nr = sim_machine()->nr_nodes;

	if (node < 0 || nr == 1 || !process->elsewhere_one_in ||
	    sim_random(process->elsewhere_one_in))
		return node;
	return (node + 1) % (int)nr;
}

static bool permit_get(struct kt_item *item, int wanted)
{
	struct sim_process *process = ((struct sim_job *)item->ctx)->process;
	int node = choose_node(process, wanted), bound;

	rules_permit(item);
	bound = kt_caps_get(&process->machine,
			    node < 0 ? NULL : &process->nodes[node]);
	if (bound < 0)
		return false;
	if (item->host.permits)
		sim_fail("item %u has its permits already", item->index);
	if (process->machine.used > process->machine.limit)
		sim_fail("%u helpers of a process, %u are allowed",
			 process->machine.used, process->machine.limit);
	if (item->node != KT_NO_NODE)
		sim_fail("item %u is bound to a node already", item->index);
	item->host.permits = true;
	item->host.node = bound ? node : -1;
	if (bound)
		item->node = node;
	if (bound && node != wanted)
		rules_redealt(item, node);
	return true;
}

static void permit_put(struct kt_item *item)
{
	struct sim_process *process = ((struct sim_job *)item->ctx)->process;

	if (!item->host.permits)
		sim_fail("item %u gives back permits that it has not",
			 item->index);
	item->host.permits = false;
	if (item->host.node >= 0)
		kt_cap_put(&process->nodes[item->host.node]);
	kt_cap_put(&process->machine);
}

/* As in user/: another helper may run in place of one that gets no CPU. */
static void permit_yield(struct kt_item *item)
{
	struct kt_host_item *host = &item->host;
	uint64_t cpu_ns = sim_cpu_time(host->helper->thread);

	rules_yields(item);
	if (host->shared && cpu_ns == host->seen_cpu_ns) {
		sim_trace("yields the permit of item %u", item->index);
		helpers_put_permit(item);
		host->yielded = true;
		((struct sim_job *)item->ctx)->nr_yielded++;
	}
	host->seen_cpu_ns = cpu_ns;
}

/* ---- limits, nodes, clocks ---- */

static void grow_job(struct sim_job *job)
{
	struct kt_context *ctx = &job->ctx;

	job->alone = false;
	jobs_make_items(job, kt_context_grow(ctx, job->max_threads) - 1);
	ctx->wanted = ctx->tune.threads;
	job->grown = ctx->helpers.nr;
	if (job->grown)
		shares_register(job);
	sim_trace("may have %u threads", ctx->wanted);
}

/* Does a job that began in an overload still have no helpers? */
static bool stays_alone(uint64_t now_ns, uint64_t *until_ns)
{
	*until_ns = now_ns + ALONE_NS;
	return shares_in_overload(1, 2) < 2;
}

static unsigned threads_by_policy(struct sim_job *job, uint64_t now_ns,
				  bool refresh, uint64_t *until_ns)
{
	struct kt_context *ctx = &job->ctx;
	unsigned threads;

	sim_point();
	if (job->alone && stays_alone(now_ns, until_ns))
		return 1;
	if (job->alone)
		grow_job(job);
	threads = ctx->wanted;
	if (refresh) {
		if (kt_context_stuck(ctx, now_ns)) {
			rules_stuck(job, now_ns);
			shares_overload_seen();
		}
		if (ctx->cpus_generation != sim_host.moves)
			kt_store(&ctx->cpus_generation, sim_host.moves);
	}
	if (job->entry >= 0)
		threads = shares_threads(job, threads, now_ns, until_ns);
	if (!ctx->detached)
		threads =
			shares_in_overload(kt_load(&ctx->job.threads), threads);
	return threads;
}

static unsigned allowed_threads(struct kt_context *ctx, uint64_t now_ns,
				bool refresh, uint64_t *until_ns)
{
	struct sim_job *job = (struct sim_job *)ctx;
	unsigned threads = threads_by_policy(job, now_ns, refresh, until_ns);

	rules_answered(job, threads, *until_ns);
	return threads;
}

static int serving_node(struct kt_context *ctx, unsigned range, unsigned turn)
{
	int node = ctx->job.ranges[range].node;

	rules_serves((struct sim_job *)ctx, range, turn);
	if (sim_machine()->nr_nodes == 1)
		return -1;
	return node >= 0 ? node : (int)sim_node_of(sim_cpu());
}

static int current_node(void)
{
	return (int)sim_node_of(sim_cpu());
}

static void notify_stage(struct kt_context *ctx, enum kt_stage stage)
{
	struct sim_job *job = (struct sim_job *)ctx;

	if (stage == KT_STAGE_BEGUN && ctx->helpers.nr)
		shares_register(job);
	else if (stage == KT_STAGE_DRAINING)
		shares_unregister(job);
	job->rules.draining = stage == KT_STAGE_DRAINING;
	if (stage == KT_STAGE_BEGUN && job->begun)
		job->begun(job);
	else if (stage == KT_STAGE_DRAINING && job->draining)
		job->draining(job);
	if (stage != KT_STAGE_ADJUSTED)
		return;
	job->adjusted = ctx->job.threads;
	rules_adjusted(job);
	sim_trace("has %u threads of %u wanted", ctx->job.threads, ctx->wanted);
}

const struct kt_host_ops kt_host = {
	.submit = submit_item,
	.cancel = cancel_item,
	.state = item_state,
	.wait = wait_for_helper,
	.node_has_permit = node_has_permit,
	.permit_get = permit_get,
	.permit_put = permit_put,
	.permit_yield = permit_yield,
	.allowed_threads = allowed_threads,
	.serving_node = serving_node,
	.current_node = current_node,
	.notify = notify_stage,
};
