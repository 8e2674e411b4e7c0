// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seats: the helpers of a run, from the offer to what they leave behind.
 *
 * Only helpers that have begun are waited for; an offer that nobody took is
 * withdrawn, so a job is never slower for a helper that gets no CPU.
 */
#include <linux/cpuset.h>
#include <linux/cred.h>
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "core/claim.h"
#include "core/placement.h"
#include "kmod/idle.h"
#include "kmod/run.h"
#include "kmod/stats.h"
#include "kmod/worker.h"

/* How long a helper that was meant for a busy node is not bound to another. */
#define ELSEWHERE_NS 5000000

void run_stop_if_killed(struct run *run)
{
	struct task_struct *task = READ_ONCE(run->task);

	if (task && (run->ctl->flags & KTASK_KILLABLE) &&
	    fatal_signal_pending(task))
		kt_job_stop(&run->job, -EINTR);
}

/* Such a caller comes to a point where it can between two of its chunks. */
static bool caller_freezes(const struct run *run)
{
	return (run->ctl->flags & KTASK_CALLER_PROCESS) && freezing(run->task);
}

/* Seat i is the (i + 2)-th thread, counting the caller. */
static bool helper_tick(struct kt_worker *worker, uint64_t now_ns)
{
	struct run_seat *rs = container_of(worker, struct run_seat, worker);

	cond_resched();
	/* The caller may be in a long chunk. */
	run_stop_if_killed(rs->run);
	return rs->index + 2 > kt_load(&rs->run->job.threads) ||
	       caller_freezes(rs->run);
}

static void put_slots(struct run_seat *rs)
{
	if (rs->node_cap)
		kt_cap_put(rs->node_cap);
	kt_cap_put(pool_machine());
	kt_cap_put(rs->run->budget);
}

/*
 * A kernel thread that works for a process works in its address space, on its
 * memory nodes and under its memory policy, which the caller keeps as long as its
 * job has helpers.  A worker of the process has all three.  (Should the machine's
 * memory nodes change meanwhile, the kernel adapts the policy twice.)
 */
static void borrow_nodes(struct task_struct *task)
{
#ifdef CONFIG_CPUSETS
	nodemask_t nodes;

	task_lock(task);
	nodes = task->mems_allowed;
	task_unlock(task);
	set_mems_allowed(nodes);
#endif
}

static void return_nodes(void)
{
	set_mems_allowed(node_states[N_MEMORY]);
}

#ifdef CONFIG_NUMA
static void set_policy(struct mempolicy *policy)
{
	task_lock(current);
	current->mempolicy = policy;
	task_unlock(current);
}

static void borrow_policy(const struct run *run)
{
	set_policy(run->task->mempolicy);
}

static void return_policy(void)
{
	set_policy(NULL);
}
#else
static void borrow_policy(const struct run *run)
{
}

static void return_policy(void)
{
}
#endif

/* Pages are charged to the group that owns the address space; what the kernel
 * keeps of them, page tables above all, only if a thread of its own names it. */
static void charge_caller(const struct run *run)
{
	set_active_memcg(get_mem_cgroup_from_mm(run->mm));
}

static void charge_nobody(void)
{
	mem_cgroup_put(set_active_memcg(NULL));
}

/* A fault may allocate blocks of a file, which quotas and reserves are for: a
 * thread of the kernel would have root's rights to them. */
static void become_caller(const struct run *run)
{
	if (run->mm) {
		kthread_use_mm(run->mm);
		charge_caller(run);
		override_creds(run->cred);
	}
	if (run->ctl->flags & (KTASK_CALLER_MM | KTASK_CALLER_PROCESS)) {
		borrow_nodes(run->task);
		borrow_policy(run);
	}
}

static void become_oneself(const struct run *run)
{
	if (run->ctl->flags & (KTASK_CALLER_MM | KTASK_CALLER_PROCESS)) {
		return_policy();
		return_nodes();
	}
	if (run->mm) {
		revert_creds(current_real_cred());
		charge_nobody();
		kthread_unuse_mm(run->mm);
	}
}

/* What the caller may not wait for when it allocates, with the locks that it
 * holds, neither may who works for it while it waits. */
static unsigned int enter_scope(const struct run *run)
{
	unsigned int added = READ_ONCE(run->scope) & ~current->flags;

	current->flags |= added;
	return added;
}

static void leave_scope(unsigned int added)
{
	current->flags &= ~added;
}

static void helper_work(struct seat *seat)
{
	struct run_seat *rs = container_of(seat, struct run_seat, seat);
	struct run *run = rs->run;
	struct run_context context;
	bool foreign = current->flags & PF_KTHREAD;
	unsigned int scope;

	idle_put(rs->cpu);
	/* Bound to no node it serves the one that it happens to be on. */
	if (rs->worker.node == KT_NO_NODE && run->job.nr_ranges > 1) {
		rs->worker.node = numa_node_id();
		rs->worker.range = kt_claim_home(&run->job, rs->worker.node,
						 rs->index + 1);
	}
	run_enter(&context, run);
	if (foreign)
		become_caller(run);
	scope = enter_scope(run);
	run_lock_map(run);
	kt_job_work(&run->job, &rs->worker);
	run_unlock_map(run);
	leave_scope(scope);
	stats_add(STAT_CHUNKS, rs->worker.chunks);
	stats_add(STAT_UNITS, rs->worker.units);
	if (foreign)
		become_oneself(run);
	run_leave(&context);
	put_slots(rs);
}

/* Take the slots that a helper needs.  Return: false if there are none. */
static bool get_slots(struct run_seat *rs, int nid)
{
	int bound;

	if (!kt_cap_get(rs->run->budget))
		return false;
	bound = kt_caps_get(pool_machine(), pool_node(nid));
	if (bound < 0) {
		kt_cap_put(rs->run->budget);
		return false;
	}
	rs->node_cap = bound ? pool_node(nid) : NULL;
	return true;
}

static const struct cpumask *own_cpus(const struct run *run)
{
	return run->cpus ?: current->cpus_ptr;
}

/*
 * A job that nobody waits for is done by its first helper or not at all, so that
 * one comes before long.
 */
static bool needs_idle(const struct run *run, unsigned int index)
{
	return idle_matters(kt_now_ns() - run->start_ns,
			    READ_ONCE(run->task) || index);
}

static bool is_full(const struct kt_cap *cap)
{
	return kt_load(&cap->used) >= kt_load(&cap->limit);
}

/* May a helper be bound to it now?  What belongs to no node binds none. */
static bool has_room(const struct kt_job *job, int nid)
{
	const struct kt_cap *cap = pool_node(nid);

	return !cap || !is_full(cap);
}

static bool has_work(const struct run *run, int nid)
{
	const struct kt_job *job = &run->job;

	return job->ranges[kt_claim_home(job, nid, 0)].node == nid;
}

/*
 * On another node than @nid: at once where that has work of its own, which is not
 * given to the range's, or @nid no CPUs; else only when it was seen for some time
 * that these are busy.
 */
static int take_elsewhere(const struct run *run, int nid,
			  const struct cpumask *own)
{
	bool any = !idle_may(nid, own, run->ctl->cpus) ||
		   kt_now_ns() - run->start_ns > ELSEWHERE_NS;
	int i, cpu = -1;

	for (i = 1; i < nr_node_ids && cpu < 0; i++) {
		int other = (nid + i) % nr_node_ids;

		if (node_state(other, N_CPU) && has_room(&run->job, other) &&
		    (any || has_work(run, other)))
			cpu = idle_take(other, own, run->ctl->cpus);
	}
	return cpu;
}

/* Return: false if no CPU idles: of the range's node, or of another, which @nid is
 * then set to. */
static bool find_cpu(struct run_seat *rs, int *nid)
{
	const struct cpumask *own = own_cpus(rs->run);

	rs->cpu = -1;
	if (!needs_idle(rs->run, rs->index))
		return true;
	rs->cpu = idle_take(*nid, own, rs->run->ctl->cpus);
	if (rs->cpu < 0 && *nid >= 0 && *nid < nr_node_ids) {
		rs->cpu = take_elsewhere(rs->run, *nid, own);
		*nid = rs->cpu < 0 ? *nid : cpu_to_node(rs->cpu);
	}
	stats_add(STAT_NONE_IDLE, rs->cpu < 0);
	return rs->cpu >= 0;
}

/* To a thread of the caller's process if that is wanted and can be had. */
static bool offer_to_any(struct run_seat *rs, int nid)
{
	const struct ktask_ctl *ctl = rs->run->ctl;
	const struct cpumask *own = own_cpus(rs->run);

	if ((ctl->flags & KTASK_CALLER_PROCESS) && !rs->worker_thread)
		rs->worker_thread = worker_make(nid);
	if (rs->worker_thread &&
	    pool_offer_to(rs->worker_thread, &rs->seat, nid, own, ctl->cpus))
		return true;
	return pool_offer(&rs->seat, nid, own, ctl->cpus);
}

/* Bound to the node of its range, to another whose CPUs idle, or to none. */
static void begin_worker(struct run_seat *rs, int nid)
{
	struct kt_job *job = &rs->run->job;

	kt_worker_begin(&rs->worker, job, nid, rs->index + 1);
	rs->worker.tick = helper_tick;
	if (!rs->node_cap)
		return;
	if (nid == job->ranges[rs->range].node) {
		rs->worker.range = rs->range;
		return;
	}
	kt_placement_undeal(job, rs->range);
	rs->range = rs->worker.range;
	job->ranges[rs->range].dealt++;
}

static bool offer_seat(struct run *run, unsigned int index)
{
	struct run_seat *rs = &run->seats[index];
	int nid;

	/* No CPU is promised for nothing. */
	if (is_full(pool_machine()) || is_full(run->budget))
		return false;
	rs->run = run;
	rs->index = index;
	rs->range = kt_placement_deal(&run->job, has_room);
	rs->seat.work = helper_work;
	nid = run->job.ranges[rs->range].node;
	if (!find_cpu(rs, &nid))
		goto undeal;
	if (!get_slots(rs, nid))
		goto put_cpu;
	if (!rs->node_cap)
		nid = NUMA_NO_NODE;
	begin_worker(rs, nid);
	if (offer_to_any(rs, nid))
		return true;
	put_slots(rs);
put_cpu:
	idle_put(rs->cpu);
undeal:
	kt_placement_undeal(&run->job, rs->range);
	return false;
}

/* A helper has left: keep what it did, free the seat. */
static void collect(struct run *run, struct run_seat *rs)
{
	run->lent += pool_wait(&rs->seat, run->ctl->flags & KTASK_KILLABLE);
	rs->seat.seated = false;
	kt_placement_undeal(&run->job, rs->range);
	run->chunks += rs->worker.chunks;
	run->units += rs->worker.units;
	if (rs->worker.chunks && !rs->counted) {
		rs->counted = true;
		run->threads++;
	}
	/* Counted; a failure is kept for undo. */
	rs->worker.chunks = 0;
	rs->worker.units = 0;
}

void run_alloc_seats(struct run *run, unsigned int nr)
{
	/* Never into reclaim: the caller may hold locks that it takes. */
	for (; nr && !run->seats; nr = nr / 2) {
		run->seats = kcalloc(nr, sizeof(*run->seats),
				     GFP_NOWAIT | __GFP_NOWARN);
		run->nr_seats = nr;
	}
	if (!run->seats)
		run->nr_seats = 0;
}

void run_seat_threads(struct run *run, unsigned int threads)
{
	unsigned int nr = 1;

	threads = min(threads, run->nr_seats + 1);
	for (; nr < threads; nr++) {
		struct run_seat *rs = &run->seats[nr - 1];

		if (rs->seat.seated) {
			if (pool_seat_state(&rs->seat) != SEAT_DONE)
				continue;
			collect(run, rs);
		}
		/* What it left is needed for undo, and the job ends. */
		if (rs->worker.failed)
			break;
		/* Those that have begun may be done before the last is woken. */
		if (kt_job_idle(&run->job))
			break;
		/* Before the offer: the helper compares itself with it. */
		kt_store(&run->job.threads, nr + 1);
		if (!offer_seat(run, nr - 1))
			break;
		run->nr_seated = max(run->nr_seated, nr);
	}
	kt_store(&run->job.threads, nr);
}

/* First all offers that nobody took, so that no more helpers begin. */
void run_withdraw_offers(struct run *run)
{
	unsigned int i;

	for (i = 0; i < run->nr_seated; i++) {
		struct run_seat *rs = &run->seats[i];

		if (rs->seat.seated && pool_withdraw(&rs->seat)) {
			idle_put(rs->cpu);
			put_slots(rs);
			kt_placement_undeal(&run->job, rs->range);
			rs->seat.seated = false;
		}
	}
}

/* One at a time: exactly one thread runs at the caller's priority. */
void run_wait_for_helpers(struct run *run)
{
	unsigned int i;

	/* Tell lockdep: whatever helpers take in chunks, this waits for. */
	if (run->nr_seated) {
		run_lock_map(run);
		run_unlock_map(run);
	}
	for (i = 0; i < run->nr_seated; i++)
		if (run->seats[i].seat.seated)
			collect(run, &run->seats[i]);
}

void run_end_workers(struct run *run)
{
	unsigned int i;

	for (i = 0; i < run->nr_seats; i++)
		if (run->seats[i].worker_thread)
			worker_end(run->seats[i].worker_thread);
	for (i = 0; i < run->nr_seats; i++)
		if (run->seats[i].worker_thread)
			worker_wait(run->seats[i].worker_thread);
}

const struct kt_worker *run_worker_at(void *host, unsigned int index)
{
	struct run *run = host;

	return index ? &run->seats[index - 1].worker : &run->caller;
}
