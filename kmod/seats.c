// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seats: the helpers of a run, from the offer to what they leave behind.
 *
 * Only helpers that have begun are waited for; an offer that nobody took is
 * withdrawn, so a job is never slower for a helper that gets no CPU.
 */
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "core/claim.h"
#include "kmod/run.h"

void run_stop_if_killed(struct run *run)
{
	struct task_struct *task = READ_ONCE(run->task);

	if (task && (run->ctl->flags & KTASK_KILLABLE) &&
	    fatal_signal_pending(task))
		kt_job_stop(&run->job, -EINTR);
}

/* Seat i is the (i + 2)-th thread, counting the caller. */
static bool helper_tick(struct kt_worker *worker, uint64_t now_ns)
{
	struct run_seat *rs = container_of(worker, struct run_seat, worker);

	cond_resched();
	/* The caller may be in a long chunk. */
	run_stop_if_killed(rs->run);
	return rs->index + 2 > kt_load(&rs->run->job.threads);
}

static void put_slots(struct run_seat *rs)
{
	if (rs->node_cap)
		kt_cap_put(rs->node_cap);
	kt_cap_put(pool_machine());
	kt_cap_put(rs->run->budget);
}

static void helper_work(struct seat *seat)
{
	struct run_seat *rs = container_of(seat, struct run_seat, seat);
	struct run *run = rs->run;
	struct run_context context;

	/* Bound to no node it serves the one that it happens to be on. */
	if (rs->worker.node == KT_NO_NODE && run->job.nr_ranges > 1) {
		rs->worker.node = numa_node_id();
		rs->worker.range = kt_claim_home(&run->job, rs->worker.node,
						 rs->index + 1);
	}
	run_enter(&context, run);
	if (run->mm)
		kthread_use_mm(run->mm);
	lock_map_acquire(&run->lockdep);
	kt_job_work(&run->job, &rs->worker);
	lock_map_release(&run->lockdep);
	if (run->mm)
		kthread_unuse_mm(run->mm);
	run_leave(&context);
	put_slots(rs);
}

/* Node that helper @index should serve: dealt over the ranges in turn, from
 * the one behind that with which the caller begins. */
static int node_for(const struct run *run, unsigned int index)
{
	const struct kt_job *job = &run->job;

	return job->ranges[(run->home + index + 1) % job->nr_ranges].node;
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

static bool offer_seat(struct run *run, unsigned int index)
{
	struct run_seat *rs = &run->seats[index];
	int nid = node_for(run, index);

	rs->run = run;
	rs->index = index;
	rs->seat.work = helper_work;
	if (!get_slots(rs, nid))
		return false;
	if (!rs->node_cap)
		nid = NUMA_NO_NODE;
	kt_worker_begin(&rs->worker, &run->job, nid, index + 1);
	rs->worker.tick = helper_tick;
	if (pool_offer(&rs->seat, nid, run->ctl->cpus))
		return true;
	put_slots(rs);
	return false;
}

/* A helper has left: keep what it did, free the seat. */
static void collect(struct run *run, struct run_seat *rs)
{
	run->lent += pool_wait(&rs->seat);
	rs->seat.seated = false;
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
			put_slots(rs);
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
		lock_map_acquire(&run->lockdep);
		lock_map_release(&run->lockdep);
	}
	for (i = 0; i < run->nr_seated; i++)
		if (run->seats[i].seat.seated)
			collect(run, &run->seats[i]);
}

const struct kt_worker *run_worker_at(void *host, unsigned int index)
{
	struct run *run = host;

	return index ? &run->seats[index - 1].worker : &run->caller;
}
