/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The user-space host of engine/: threads of the pool, permits in the shared
 * registry, policy.
 *
 * The caller takes the permits of this process for a helper.  The helper itself
 * takes one that counts in all processes (user/limits/permits.h), and stays queued while
 * there is none.
 *
 * Locking: user/user_job.h, engine/context.h.
 */
#include <time.h>

#include "user/user_job.h"
#include "user/blocking/user_monitor.h"
#include "user/limits/overload.h"
#include "user/job_cpus.h"
#include "user/job_waits.h"
#include "user/limits/permits.h"
#include "user/blocking/manager.h"
#include "user/limits/users.h"

/* How often a helper of a detached job polls for an idle CPU, if helpers must be
 * kept to idle CPUs. */
#define IDLE_POLL_NS 4000000
/* Of jobs that overlap, each may want more helpers than the first one of the process.  To make
 * a thread takes the lock of the process's mappings, for which others that populate memory
 * are waited for, so there is so much time between two threads. */
#define GROW_NS 5000000

static __thread struct job_current this_thread;
static uint32_t raised_are_kept; /* any thread writes it */

struct job_current *job_current(void)
{
	return &this_thread;
}

void job_expect_faults(bool faults_only)
{
	this_thread.faults_only = faults_only;
}

/* NULL: the calling thread is no helper. */
static struct pool_item *own_pool_item(void)
{
	const struct user_job *job = this_thread.job;
	struct kt_worker *worker = this_thread.worker;

	return job && worker && worker != &job->ctx.caller
		       ? &kt_item_of(worker)->host.pool_item
		       : NULL;
}

/* By another thread than the job's caller. */
static bool was_raised(const struct pool_item *item)
{
	/* The mark last: it is set before helpers are raised. */
	return pool_item_was_raised(item) && !kt_load_acquire(&raised_are_kept);
}

void job_return_loan(bool noted)
{
	struct pool_item *item = own_pool_item();

	if (item && (noted || was_raised(item)))
		pool_item_lower(item);
	else if (!item && noted)
		prio_lower();
}

void job_keep_raised(bool keep)
{
	kt_store_release(&raised_are_kept, keep);
}

/* ---- a helper ---- */

static bool must_leave(struct kt_item *item, uint64_t now_ns)
{
	struct kt_host_item *host = &item->host;

	return kt_item_tick(&item->worker, now_ns) || pool_closing() ||
	       permits_must_leave(host->permit,
				  pool_item_tid(&host->pool_item));
}

static bool is_over(const struct kt_job *core)
{
	return kt_job_stopped(core) || kt_job_idle(core) ||
	       (core->deadline_ns && kt_now_ns() >= core->deadline_ns);
}

/* Of those that the thread may use that started the job; of the helper's own if others have
 * changed these, because they did so to the whole process. */
static bool has_idle_cpu(const struct kt_item *item)
{
	struct kt_cpus own;

	return limits_has_idle_cpu(pool_item_cpus(&item->host.pool_item, &own)
					   ? &own
					   : &job_of(item->ctx)->started_cpus);
}

/* A helper of a detached job polls for itself: it sleeps until a CPU is idle, or
 * until somebody waits for the job. */
static void await_idle_cpu(struct kt_item *item, uint64_t now_ns)
{
	const struct timespec nap = { .tv_nsec = IDLE_POLL_NS };
	const struct kt_context *ctx = item->ctx;

	if (!kt_load(&ctx->detached) || now_ns < item->host.next_poll_ns ||
	    !limits_idle_only())
		return;
	while (kt_load(&ctx->detached) && !is_over(&ctx->job) &&
	       !must_leave(item, now_ns) && !has_idle_cpu(item))
		nanosleep(&nap, NULL);
	item->host.next_poll_ns = kt_now_ns() + IDLE_POLL_NS;
}

static bool tick_helper(struct kt_worker *worker, uint64_t now_ns)
{
	struct kt_item *item = kt_item_of(worker);
	struct user_job *job = job_of(item->ctx);

	if (kt_load(&job->manager))
		monitor_join();
	if (manager_wants_helpers(job))
		pool_item_blocks(&item->host.pool_item);
	await_idle_cpu(item, now_ns);
	return must_leave(item, now_ns);
}

/* In place of a thread that is blocked: without a permit. */
static bool tick_compensating(struct kt_worker *worker, uint64_t now_ns)
{
	struct kt_item *item = kt_item_of(worker);

	monitor_join();
	return kt_item_tick(worker, now_ns) ||
	       manager_has_one_cpu(job_of(item->ctx)) || pool_closing();
}

static void take_chunks(struct kt_item *item)
{
	struct job_current *current = job_current();
	struct job_current outer = *current;

	current->job = job_of(item->ctx);
	current->worker = &item->worker;
	kt_store(&item->host.tid, pool_item_tid(&item->host.pool_item));
	if (item->permitted) {
		item->host.next_poll_ns = 0;
		await_idle_cpu(item, item->submitted_ns);
	} else {
		pool_item_blocks(&item->host.pool_item);
		monitor_join();
	}
	kt_item_work(item);
	monitor_leave();
	kt_store(&item->host.tid, 0);
	*current = outer;
}

/* Helpers that have a permit that they have not yielded, and those that need none.  In this
 * order: what is read behind the first number is not read before the number that was written. */
static unsigned count_shown(const struct user_job *job)
{
	unsigned nr = __atomic_load_n(&job->nr_permitted, __ATOMIC_SEQ_CST);

	return nr + manager_nr_helpers(job);
}

/*
 * Write their number for `ktask top`.  Written whenever a helper comes or leaves, so that
 * the sum over all jobs never exceeds what the machine allows.  Another thread may have
 * counted later and written before: whoever writes last counts once more.  It sees every
 * change that was shown before, because count and number are written and read in one order
 * for all threads.
 */
static void show_helpers(struct user_job *job)
{
	unsigned nr = count_shown(job), shown = nr + 1;

	while (shown != nr && kt_load(&job->listed)) {
		shown = nr;
		permits_show_helpers(job->entry, shown);
		nr = count_shown(job);
	}
}

static void change_permitted(struct user_job *job, int change)
{
	__atomic_fetch_add(&job->nr_permitted, (uint32_t)change,
			   __ATOMIC_SEQ_CST);
	show_helpers(job);
}

static void count_helper(struct kt_item *item)
{
	struct user_job *job = job_of(item->ctx);

	kt_store(&item->host.counted, 1);
	change_permitted(job, 1);
}

/* By the helper that leaves, or by the caller for one that should have left. */
static void uncount_helper(struct kt_item *item)
{
	struct user_job *job = job_of(item->ctx);
	uint32_t counted = 1;

	if (kt_cas(&item->host.counted, &counted, 0))
		change_permitted(job, -1);
}

/* Return: false if it cannot begin: all permits are taken. */
static bool work_on_item(struct pool_item *pool_item)
{
	struct kt_item *item = (struct kt_item *)pool_item;
	struct user_job *job = job_of(item->ctx);
	const struct kt_job *core = &item->ctx->job;
	int permit;

	/* No chunk is left: the caller may be waiting for this helper to leave.  One
	 * that is late does not leave here: it may have to end a detached job. */
	if (kt_job_stopped(core) || kt_job_idle(core)) {
		kt_item_release(item);
		return true;
	}
	permit = permits_take(pool_item_tid(pool_item));
	if (permit < 0) {
		permits_entry_touch(job->entry, kt_now_ns());
		return false;
	}
	kt_store(&item->host.permit, permit);
	count_helper(item);
	take_chunks(item);
	/* In the child of a fork all permits are the parent's. */
	if (kt_load(&job->generation) != pool_generation())
		return true;
	uncount_helper(item);
	permits_put(permit);
	kt_item_release(item);
	return true;
}

static bool work_compensating(struct pool_item *pool_item)
{
	take_chunks((struct kt_item *)pool_item);
	return true;
}

/* ---- items ---- */

/* Are more permits held than there are helpers?  That of the item is one of them.  Its time
 * may be older than that of another job's item that was submitted before. */
static bool must_grow(const struct kt_item *item)
{
	static uint64_t grown_ns; /* any thread: kt_load(), kt_cas() */
	uint64_t then_ns = kt_load(&grown_ns);

	return kt_load(&pool_machine()->used) > pool_helpers() &&
	       (int64_t)(item->submitted_ns - then_ns) >= GROW_NS &&
	       kt_cas(&grown_ns, &then_ns, item->submitted_ns);
}

/*
 * No item can be submitted to a helper that is lowering or raising itself, and it may
 * lose its CPU at that moment.  Nobody submits a detached job's items again.  So if no
 * helper idles, one is made for the first item of such a job.
 */
static bool submit_to_pool(struct kt_item *item)
{
	const struct user_job *job = job_of(item->ctx);
	struct kt_host_item *host = &item->host;

	if (pool_submit(&host->pool_item, host->node_index))
		return true;
	if ((!job->ctx.detached || item->index) && !must_grow(item))
		return false;
	pool_more(1, &job->cpus);
	return pool_submit(&host->pool_item, host->node_index);
}

static bool submit_item(struct kt_item *item)
{
	struct user_job *job = job_of(item->ctx);
	struct kt_host_item *host = &item->host;
	struct pool_item *pool_item = &host->pool_item;

	host->permit = -1;
	host->counted = 0;
	kt_store(&host->tid, 0);
	host->seen_cpu_ns = UINT64_MAX;
	pool_item->now_ns = item->submitted_ns;
	if (!item->permitted) {
		pool_item->work = work_compensating;
		pool_item->anywhere = true;
		item->worker.tick = tick_compensating;
		manager_place_helper(job, pool_item);
		return pool_submit(pool_item, -1);
	}
	pool_item->work = work_on_item;
	pool_item->anywhere = job->ctx.detached;
	item->worker.tick = tick_helper;
	job_cpus_place_item(job, item);
	return submit_to_pool(item);
}

static bool cancel_item(struct kt_item *item, uint64_t now_ns)
{
	return pool_cancel(&item->host.pool_item, now_ns);
}

static enum kt_item_state item_state(const struct kt_item *item)
{
	switch (pool_item_state(&item->host.pool_item)) {
	case POOL_ITEM_QUEUED:
		return KT_ITEM_QUEUED;
	case POOL_ITEM_RUNNING:
		return KT_ITEM_RUNNING;
	default:
		return KT_ITEM_DONE;
	}
}

static bool wait_for_item(struct kt_item *item)
{
	struct pool_item *pool_item = &item->host.pool_item;

	return pool_item_state(pool_item) == POOL_ITEM_RUNNING &&
	       pool_wait(pool_item);
}

/* ---- permits ---- */

static bool permit_get(struct kt_item *item, int node)
{
	int bound = kt_caps_get(pool_machine(), pool_node(node));

	job_assert_owner(job_of(item->ctx));
	if (bound < 0)
		return false;
	item->host.node_index = node;
	item->host.node_cap = bound ? pool_node(node) : NULL;
	if (item->host.node_cap)
		item->node = job_of(item->ctx)->topo->ids[node];
	return true;
}

static void permit_put(struct kt_item *item)
{
	if (item->host.node_cap)
		kt_cap_put(item->host.node_cap);
	kt_cap_put(pool_machine());
}

/* A helper that got no CPU since the last refresh may get none for long.  Another helper
 * can use its permit meanwhile, so from before that it does not count.  The caller would
 * wait for its chunk at the end, so it lends its priority now. */
static void permit_yield(struct kt_item *item)
{
	struct kt_host_item *host = &item->host;
	uint64_t cpu_ns = pool_item_cpu_ns(&host->pool_item);

	if (cpu_ns == host->seen_cpu_ns && cpu_ns != UINT64_MAX) {
		uncount_helper(item);
		permits_yield(kt_load(&host->permit),
			      pool_item_tid(&host->pool_item));
		pool_hurry(&host->pool_item);
	}
	host->seen_cpu_ns = cpu_ns;
}

/* ---- policy ---- */

/* When a job of this process last read policy. */
static uint64_t policy_read_ns; /* any thread: kt_load(), kt_store() */

uint64_t job_policy_read_ns(void)
{
	return kt_load(&policy_read_ns);
}

static void refresh_policy(struct user_job *job, uint64_t now_ns)
{
	job_assert_owner(job);
	kt_store(&policy_read_ns, now_ns);
	job_cpus_refresh(job, now_ns);
	if (kt_context_stuck(&job->ctx, now_ns))
		overload_starved(now_ns);
}

/* Does a job that began in an overload still have no helpers? */
static bool stays_alone(uint64_t now_ns, uint64_t *until_ns)
{
	*until_ns = now_ns + JOB_ALONE_NS;
	return overload_threads(1, 2, now_ns) < 2;
}

/* Policy may want fewer threads than pay. */
static unsigned allowed_threads(struct kt_context *ctx, uint64_t now_ns,
				bool refresh, uint64_t *until_ns)
{
	struct user_job *job = job_of(ctx);
	uint64_t poll_ns = refresh ? now_ns : 0;
	unsigned working = kt_load(&ctx->job.threads);
	unsigned threads, most, wanted;

	if (job->alone && stays_alone(now_ns, until_ns))
		return 1;
	if (job->alone)
		job_grow(job);
	if (refresh)
		refresh_policy(job, now_ns);
	most = KT_MIN(job->nr_cpus, limits_now(poll_ns));
	wanted = KT_MIN(ctx->wanted, most);
	if (permits_shared())
		users_refresh(poll_ns);
	threads = 1 + permits_share(job->entry, wanted - 1, now_ns, until_ns);
	/* Submit one more helper, which waits for a permit: the caller may be in a long
	 * chunk when the turn of this job comes. */
	if (now_ns == ctx->start_ns)
		threads = KT_MIN(threads + 1, wanted);
	/* Helpers of a detached job poll for themselves: none is submitted
	 * later. */
	if (ctx->detached)
		return threads;
	if (limits_idle_only())
		return KT_MIN(threads, limits_idle_threads(working));
	threads = overload_threads(working, threads, now_ns);
	if (threads > 1 && job->unmade) {
		job->unmade = false;
		pool_more(ctx->helpers.nr, &job->cpus);
	}
	return threads;
}

static int serving_node(struct kt_context *ctx, unsigned range, unsigned turn)
{
	return job_cpus_node(job_of(ctx), range, turn);
}

/* ---- stages ---- */

void job_enter_registry(struct user_job *job)
{
	struct kt_context *ctx = &job->ctx;

	if (!ctx->helpers.nr)
		return;
	job->entry = permits_entry_begin(ctx->wanted - 1, job->ctl->name,
					 ctx->units_total, ctx->start_ns);
	if (job->entry < 0)
		return;
	ctx->changes = permits_changes();
	kt_store(&job->listed, 1);
}

static void tell_beginning(struct user_job *job)
{
	trace_job_start(job->ctl->name, job->ctx.units_total, job->ctx.wanted);
	job_enter_registry(job);
}

static void report_entry(struct user_job *job)
{
	struct kt_context *ctx = &job->ctx;

	manager_refresh(job, ctx->now_ns);
	show_helpers(job);
	permits_show_units(job->entry, kt_context_units(ctx));
}

static void tell_result(struct user_job *job)
{
	const struct kt_context *ctx = &job->ctx;

	trace_job_end(job->ctl->name, ctx->error, ctx->units,
		      ctx->end_ns - ctx->start_ns, ctx->threads);
	if (job->ctl->result)
		job_result(job->ctl->result, job, ctx->error);
	if (!ctx->orphan)
		job_account(job, ctx->error);
}

static void notify_stage(struct kt_context *ctx, enum kt_stage stage)
{
	struct user_job *job = job_of(ctx);

	switch (stage) {
	case KT_STAGE_BEGUN:
		tell_beginning(job);
		break;
	case KT_STAGE_ADJUSTED:
		report_entry(job);
		break;
	case KT_STAGE_DRAINING:
		kt_store(&job->listed, 0);
		permits_entry_end(job->entry);
		manager_stop(job);
		break;
	case KT_STAGE_DRAINED:
		if (job->entered)
			pool_leave();
		break;
	case KT_STAGE_ENDED:
		tell_result(job);
		break;
	}
}

const struct kt_host_ops kt_host = {
	.submit = submit_item,
	.cancel = cancel_item,
	.state = item_state,
	.wait = wait_for_item,
	.permit_get = permit_get,
	.permit_put = permit_put,
	.permit_yield = permit_yield,
	.allowed_threads = allowed_threads,
	.serving_node = serving_node,
	.current_node = topo_here,
	.notify = notify_stage,
};
