// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel host of engine/: threads of the pool or of the caller's process,
 * permits of the machine and its nodes, idle CPUs, shares, quotas.  Operations of
 * one line, and the table, are in kernel/port/ktask_ops.h.
 *
 * A permit includes the idle CPU that a helper is promised until it begins
 * (kernel/engine/idle.c).
 *
 * Behaves badly where the caller's process is at its limit of threads: each
 * submission then tries once more to make one.
 *
 * Locking: there is no lock here; the pool (kernel/engine/kernel_pool.h) and
 * kernel/engine/kernel_shares.c have theirs.  kernel/engine/kernel_job.h says who writes
 * a job, kernel/port/ktask_host.h who writes what an item has.  Operations that only the
 * caller may call assert that.
 */
#include <linux/freezer.h>
#include <linux/kernel.h>
#include <linux/sched/signal.h>
#include <linux/topology.h>

#include "core/claim.h"
#include "kernel/compat.h"
#include "kernel/engine/idle.h"
#include "kernel/engine/inherit.h"
#include "kernel/engine/kernel_helper.h"
#include "kernel/engine/kernel_job.h"
#include "kernel/engine/kernel_quota.h"
#include "kernel/engine/kernel_shares.h"
#include "kernel/engine/process_helper.h"
#include "kernel/kernel_trace.h"
#include "kernel/stats.h"

/* How old a job must be before a helper meant for a busy node may begin on another. */
#define ELSEWHERE_NS 5000000

/* ---- a helper ---- */

/* Its helpers then leave, so that the caller can freeze between two of its chunks. */
static bool caller_freezes(const struct kernel_job *job)
{
	return (job->ctl->flags & KTASK_CALLER_PROCESS) && freezing(job->task);
}

/*
 * Charge the caller's control group for the CPU time that the helper has used since the last
 * call.  A thread of the caller's process is in that group itself.
 *
 * Return: false if the group has used up its quota: its own threads are throttled then.
 */
static bool charge_group(struct helper *h)
{
	u64 now_ns = compat_cpu_time_ns();
	u64 used_ns = now_ns - h->charged_ns;

	h->charged_ns = now_ns;
	return !(current->flags & PF_KTHREAD) || !used_ns ||
	       compat_charge_group(ktask_task(), used_ns);
}

static bool tick_helper(struct kt_worker *worker, uint64_t now_ns)
{
	struct kt_item *item = kt_item_of(worker);
	struct kernel_job *job = job_of(item->ctx);
	bool within;

	cond_resched();
	/* The caller may be in a long chunk. */
	job_stop_if_killed(job);
	within = charge_group(item->host.pooled.helper);
	return kt_item_tick(worker, now_ns) || !within || caller_freezes(job);
}

static void release_promised_cpu(struct kt_item *item)
{
	idle_put(item->host.cpu);
	item->host.cpu = -1;
}

/* A helper that is bound to no node serves the one that it runs on. */
static void serve_own_node(struct kt_item *item)
{
	struct kt_worker *worker = &item->worker;
	const struct kt_job *job = &item->ctx->job;

	if (worker->node != KT_NO_NODE || job->nr_ranges < 2)
		return;
	worker->node = numa_node_id();
	worker->range = kt_claim_home(job, worker->node, item->index + 1);
}

static void work_on_item(struct pool_item *pooled)
{
	struct kt_item *item =
		container_of(pooled, struct kt_item, host.pooled);
	struct kernel_job *job = job_of(item->ctx);
	struct job_entry entry;
	unsigned int scope;

	pooled->helper->charged_ns = compat_cpu_time_ns();
	release_promised_cpu(item);
	serve_own_node(item);
	job_enter(&entry, job);
	scope = inherit_from_caller(job);
	job_lock_map(job);
	kt_item_work(item);
	job_unlock_map(job);
	stats_add(STAT_CHUNKS, item->worker.chunks);
	stats_add(STAT_UNITS, item->worker.units);
	inherit_no_more(job, scope);
	charge_group(pooled->helper);
	job_leave(&entry);
	kt_item_release(item);
}

/* ---- items ---- */

static const struct cpumask *own_cpus(const struct kernel_job *job)
{
	return job->cpus ?: current->cpus_ptr;
}

/* Prefer a thread of the caller's process, if the client asked for these and one can be
 * made; else take a kernel thread of the pool. */
bool kt_host_submit(struct kt_item *item)
{
	struct kernel_job *job = job_of(item->ctx);
	const struct ktask_ctl *ctl = job->ctl;
	const struct cpumask *own = own_cpus(job);
	struct kt_host_item *host = &item->host;

	job_assert_caller(job);
	item->worker.tick = tick_helper;
	host->pooled.work = work_on_item;
	if ((ctl->flags & KTASK_CALLER_PROCESS) && !host->process_helper)
		host->process_helper = process_helper_make(item->node);
	if (host->process_helper &&
	    pool_submit_to(host->process_helper, &host->pooled, item->node, own,
			   ctl->cpus))
		return true;
	return pool_submit(&host->pooled, item->node, own, ctl->cpus,
			   host->cpu);
}

bool kt_host_wait(struct kt_item *item)
{
	const struct ktask_ctl *ctl = job_of(item->ctx)->ctl;

	job_assert_caller(job_of(item->ctx));
	return pool_wait(&item->host.pooled, ctl->flags & KTASK_KILLABLE);
}

/* ---- permits ---- */

static u64 age_ns(const struct kt_context *ctx)
{
	return ctx->now_ns > ctx->start_ns ? ctx->now_ns - ctx->start_ns : 0;
}

/*
 * Only helpers work on a job for which nobody waits.  So its first helper does not wait
 * long for an idle CPU.
 */
static bool needs_idle_cpu(const struct kt_item *item)
{
	return !pool_boots() &&
	       idle_matters(age_ns(item->ctx),
			    !kt_load(&item->ctx->detached) || item->index);
}

static bool node_has_work(const struct kt_job *job, int nid)
{
	return job->ranges[kt_claim_home(job, nid, 0)].node == nid;
}

/*
 * Find an idle CPU on another node than @nid.  A node that has a range of its own is
 * used at once, and so is any node if @nid has no CPUs.  Else another node is used only
 * after the CPUs of @nid have been busy for some time.
 */
static int find_cpu_elsewhere(struct kernel_job *job, int nid,
			      const struct cpumask *own)
{
	const struct cpumask *only = job->ctl->cpus;
	bool any =
		!idle_may(nid, own, only) || age_ns(&job->ctx) > ELSEWHERE_NS;
	int i, cpu = -1;

	for (i = 1; i < nr_node_ids && cpu < 0; i++) {
		int other = (nid + i) % nr_node_ids;

		if (node_state(other, N_CPU) &&
		    kt_host_node_has_permit(&job->ctx, other) &&
		    (any || node_has_work(&job->ctx.job, other)))
			cpu = idle_take(other, own, only);
	}
	return cpu;
}

/* Find an idle CPU for a helper that may begin on a busy one: it begins sooner there. */
static int find_preferred_cpu(int nid, const struct cpumask *own,
			      const struct cpumask *only)
{
	return idle_take(idle_may(nid, own, only) ? nid : NUMA_NO_NODE, own,
			 only);
}

/* Find an idle CPU for a helper.  @nid: the range's node; set to the CPU's node, if that
 * is another.  Return: false if there is none and it may not begin elsewhere. */
static bool find_idle_cpu(struct kt_item *item, int *nid)
{
	struct kernel_job *job = job_of(item->ctx);
	const struct cpumask *own = own_cpus(job);
	int cpu;

	if (!needs_idle_cpu(item)) {
		item->host.cpu = find_preferred_cpu(*nid, own, job->ctl->cpus);
		return true;
	}
	cpu = idle_take(*nid, own, job->ctl->cpus);
	if (cpu < 0 && *nid >= 0 && *nid < nr_node_ids) {
		cpu = find_cpu_elsewhere(job, *nid, own);
		*nid = cpu < 0 ? *nid : cpu_to_node(cpu);
	}
	item->host.cpu = cpu;
	stats_add(STAT_NONE_IDLE, cpu < 0);
	return cpu >= 0;
}

/* Bind the helper to @wanted, to another node whose CPUs idle, or to no node. */
bool kt_host_permit_get(struct kt_item *item, int wanted)
{
	int nid = wanted, bound;

	/* Ask for a permit first: a helper without one needs no CPU. */
	if (pool_is_full(pool_machine()) || !find_idle_cpu(item, &nid))
		return false;
	bound = kt_caps_get(pool_machine(), pool_node(nid));
	if (bound < 0) {
		release_promised_cpu(item);
		return false;
	}
	if (!bound)
		return true;
	item->node = nid;
	if (nid != wanted)
		kt_item_redeal(item, nid);
	return true;
}

void kt_host_permit_put(struct kt_item *item)
{
	struct kt_cap *node = pool_node(item->node);

	release_promised_cpu(item);
	if (node)
		kt_cap_put(node);
	kt_cap_put(pool_machine());
}

/* ---- policy ---- */

unsigned int kt_host_allowed_threads(struct kt_context *ctx, uint64_t now_ns,
				     bool refresh, uint64_t *until_ns)
{
	const struct kernel_job *job = job_of(ctx);
	unsigned int limit = kt_load(&pool_machine()->limit);
	unsigned int threads =
		1 + shares_helpers(job->share_entry, ctx->wanted - 1, limit);

	job_assert_caller(job);
	if (job->watched && !steal_allows(&job->steal))
		return 1;
	/* At the beginning the job has no more items than the quota allows. */
	if (!refresh)
		return threads;
	return min(threads,
		   job->cpus ? quota_threads_of(job->group) : quota_threads());
}

/* ---- stages ---- */

#ifdef CONFIG_LOCKDEP
/* One for each thread function in the kernel itself; written once by cmpxchg(). */
static struct {
	struct lock_class_key key;
	void *client;
} built_in_classes[32];

/*
 * The key of a lock class.  In a module any address can be one, so the thread function is
 * used.  In the kernel itself only the address of data can be one.
 */
static struct lock_class_key *class_of_client(void *client)
{
	size_t i;

	if (!compat_is_kernel_text(client))
		return client;
	for (i = 0; i < ARRAY_SIZE(built_in_classes); i++) {
		void *old = cmpxchg(&built_in_classes[i].client, NULL, client);

		if (!old || old == client)
			return &built_in_classes[i].key;
	}
	return &__lockdep_no_validate__;
}
#else
#define class_of_client(client) ((struct lock_class_key *)(client))
#endif

/* Each thread function has a class, and each nesting level a subclass: a chunk may run a
 * job of its own kind. */
static void init_lockdep(struct kernel_job *job)
{
	lockdep_init_map(&job->lockdep, "ktask",
			 class_of_client((void *)job->ctl->thread_func), 0);
}

void kt_host_begun(struct kt_context *ctx)
{
	struct kernel_job *job = job_of(ctx);

	trace_ktask_job_start(job->ctl->thread_func, ctx->units_total,
			      ctx->wanted);
	if (!ctx->helpers.nr)
		return;
	init_lockdep(job);
	job->pid = task_pid_nr(current);
	get_task_comm(job->comm, current);
	job->share_entry = shares_register(job, ctx->wanted - 1);
}

/* Tell lockdep that the caller waits for whatever locks helpers take in chunks. */
void kt_host_draining(struct kt_context *ctx)
{
	struct kernel_job *job = job_of(ctx);

	shares_unregister(job->share_entry);
	if (!ctx->helpers.nr_used)
		return;
	job_lock_map(job);
	job_unlock_map(job);
}

/* End the threads that were made in the caller's process.  All are told to end before
 * the first is waited for. */
void kt_host_drained(struct kt_context *ctx)
{
	const struct kt_helpers *helpers = &ctx->helpers;
	struct helper *h;
	unsigned int i;

	if (!(job_of(ctx)->ctl->flags & KTASK_CALLER_PROCESS))
		return;
	for (i = 0; i < helpers->nr; i++) {
		h = helpers->items[i].host.process_helper;
		if (h)
			process_helper_end(h);
	}
	for (i = 0; i < helpers->nr; i++) {
		h = helpers->items[i].host.process_helper;
		if (h)
			process_helper_wait(h);
	}
}

void kt_host_ended(struct kt_context *ctx)
{
	job_tell_end(job_of(ctx));
}
