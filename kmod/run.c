// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run: a job from its control block to its end, as its caller drives it.
 *
 * The caller alone decides: between two of its chunks it adapts the number of
 * threads and seats more helpers or lets some leave (kmod/seats.c).
 *
 * Behaves badly when there is no memory for the table of ranges of
 * ktask_run_numa(): the caller then does one range after another, alone.
 */
#include <linux/cred.h>
#include <linux/export.h>
#include <linux/freezer.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "core/claim.h"
#include "core/undo.h"
#include "kmod/demand.h"
#include "kmod/quota.h"
#include "kmod/run.h"
#include "kmod/stats.h"
#include "kmod/trace.h"

/* How often the caller looks up from its work, and at policy; more often in the
 * beginning, when helpers or their CPUs may come free from another job. */
#define TICK_FIRST_NS 50000
#define TICK_NS 500000
#define LOOK_NS 5000000
#define LOOK_SHORT_NS 2000000
#define CHUNK_US 1000

/* ---- the caller ---- */

u64 run_units_done(struct run *run)
{
	u64 units = kt_load(&run->caller.units) + kt_load(&run->units);
	unsigned int i;

	for (i = 0; i < kt_load(&run->nr_seated); i++)
		units += kt_load(&run->seats[i].worker.units);
	/* A helper that leaves may be counted twice for a moment. */
	return min(units, run->units_total);
}

static unsigned int allowed_threads(struct run *run)
{
	unsigned int limit = kt_load(&pool_machine()->limit);
	unsigned int share = demand_share(run->demand, run->wanted - 1, limit);

	return min(1 + share,
		   run->cpus ? quota_threads_of(run->group) : quota_threads());
}

/* As long as the job has lasted, within limits. */
static u64 wait_ns(const struct run *run, u64 now_ns, u64 most_ns)
{
	return clamp_t(u64, now_ns - run->start_ns, TICK_FIRST_NS, most_ns);
}

static void adapt(struct run *run, uint64_t now_ns)
{
	unsigned int wanted;

	wanted = kt_tune_step(&run->tune, now_ns, run_units_done(run));
	if (wanted == run->wanted && now_ns < run->next_look_ns)
		return;
	run->wanted = wanted;
	if (!kt_job_idle(&run->job) && !kt_job_stopped(&run->job))
		run_seat_threads(run, allowed_threads(run));
	kt_tune_limit(&run->tune, run->job.threads, run->job.threads >= wanted);
	/* Fewer than wanted: look again soon. */
	run->next_look_ns = now_ns + LOOK_NS;
	if (run->job.threads < wanted)
		run->next_look_ns =
			now_ns + wait_ns(run, now_ns, LOOK_SHORT_NS);
}

/* Helpers leave meanwhile, and CPUs that were promised to some are free. */
static void freeze_caller(struct run *run)
{
	run_withdraw_offers(run);
	run->next_look_ns = 0;
	try_to_freeze();
}

static bool caller_tick(struct kt_worker *worker, uint64_t now_ns)
{
	struct run *run = container_of(worker, struct run, caller);

	cond_resched();
	/* Such a caller holds no lock. */
	if ((run->ctl->flags & KTASK_CALLER_PROCESS) && freezing(current))
		freeze_caller(run);
	run_stop_if_killed(run);
	if (now_ns < run->next_tick_ns)
		return false;
	run->next_tick_ns = now_ns + wait_ns(run, now_ns, TICK_NS);
	if (run->nr_seats)
		adapt(run, now_ns);
	return false;
}

/* ---- beginning ---- */

static void init_job(struct kt_job *job, const struct ktask_ctl *ctl)
{
	job->func = ctl->thread_func;
	job->undo = ctl->undo_func;
	job->iter = ctl->iter_func == ktask_iter_range ? NULL : ctl->iter_func;
	job->arg = ctl->func_arg;
	job->split.min_chunk = ctl->min_chunk_size;
	job->split.align = ctl->align ? ctl->align : 1;
	job->split.target_ns =
		(u64)(ctl->chunk_us ? ctl->chunk_us : CHUNK_US) * 1000;
	job->deadline_ns = 0;
}

static void init_range(struct kt_range *range, const struct ktask_node *node)
{
	range->start = node->start;
	range->units = node->task_size;
	range->node = node->nid;
}

/* CPUs that threads of the job may run on, the caller's own included. */
static unsigned int max_threads(const struct ktask_ctl *ctl)
{
	unsigned int nr = 0;
	int cpu;

	for_each_cpu_and(cpu, current->cpus_ptr, cpu_online_mask) nr +=
		!ctl->cpus || cpumask_test_cpu(cpu, ctl->cpus);
	/* A mask without the caller's CPU leaves all of its CPUs to helpers. */
	if (ctl->cpus && !cpumask_test_cpu(raw_smp_processor_id(), ctl->cpus))
		nr++;
	nr = min(nr, kt_load(&pool_machine()->limit) + 1);
	if (ctl->max_threads)
		nr = min(nr, ctl->max_threads);
	if (nr > 1)
		nr = min(nr, quota_threads());
	return max(nr, 1u);
}

/* A nested job draws its helpers from the budget of the outermost one; one
 * that is started may outlive that. */
static void share_budget(struct run *run, unsigned int max, bool started)
{
	struct run *outer = run_current();

	run->own_budget.used = 0;
	run->own_budget.limit = max - 1;
	run->budget = outer && !started ? outer->budget : &run->own_budget;
	/* Another thread may wait for the outer one meanwhile: ktask_wait(). */
	run->depth = outer ? READ_ONCE(outer->depth) + 1 : 0;
}

static void start_clocks(struct run *run)
{
	u64 deadline_ns = run->ctl->deadline_ns;

	run->start_ns = kt_now_ns();
	run->next_tick_ns = run->start_ns + TICK_FIRST_NS;
	run->next_look_ns = run->start_ns + LOOK_NS;
	if (deadline_ns && deadline_ns <= U64_MAX - run->start_ns)
		run->job.deadline_ns = run->start_ns + deadline_ns;
}

static void init_state(struct run *run, const struct ktask_ctl *ctl)
{
	run->ctl = ctl;
	run->task = current;
	run->mm = ctl->flags & KTASK_CALLER_MM ? current->mm : NULL;
	run->cred = current_cred();
	run->cpus = NULL;
	run->group = NULL;
	run->scope = run_scope();
	run->pid = task_pid_nr(current);
	get_task_comm(run->comm, current);
	run->seats = NULL;
	run->nr_seats = 0;
	run->nr_seated = 0;
	run->demand = -1;
	run->chunks = 0;
	run->units = 0;
	run->threads = 0;
	run->lent = 0;
}

/* Any static address names a class of locks: one for each thread function, and
 * depth, since a chunk may run a job of its own kind. */
static void init_lockdep(struct run *run)
{
	lockdep_init_map(&run->lockdep, "ktask",
			 (struct lock_class_key *)run->ctl->thread_func, 0);
}

void run_begin(struct run *run, bool started)
{
	bool looks = run->job.deadline_ns || (run->ctl->flags & KTASK_KILLABLE);
	unsigned int max = max_threads(run->ctl);

	start_clocks(run);
	share_budget(run, max, started);
	max = kt_split_threads(run->units_total, run->job.split.min_chunk, max);
	kt_tune_begin(&run->tune, max, run->units_total, run->start_ns);
	kt_tune_chunk(&run->tune, run->job.split.min_chunk);
	run->wanted = run->tune.threads;
	trace_ktask_job_start(run->ctl->thread_func, run->units_total,
			      run->wanted);
	if (max > 1)
		run_alloc_seats(run, max - 1);
	if (!run->nr_seats) {
		/* Nobody looks and nobody helps: one chunk a range. */
		if (!looks && !started)
			run->job.split.min_chunk = U64_MAX;
		return;
	}
	init_lockdep(run);
	if (!started)
		run->job.ranges[run->caller.range].dealt++;
	run->demand = demand_begin(run, run->wanted - 1);
	run_seat_threads(run, allowed_threads(run));
	if (run->job.threads < run->wanted)
		run->next_look_ns = run->start_ns + TICK_FIRST_NS;
}

bool run_begin_again(struct run *run)
{
	unsigned int threads = run->job.threads;

	if (threads >= run->wanted || run->demand < 0 ||
	    kt_job_idle(&run->job) || kt_job_stopped(&run->job))
		return true;
	/* Those that it has it keeps. */
	run_seat_threads(run, max(threads, allowed_threads(run)));
	return run->job.threads >= run->wanted;
}

/* ---- the end ---- */

static u64 remote_chunks(const struct kt_job *job)
{
	u64 sum = 0;
	unsigned int i;

	for (i = 0; i < job->nr_ranges; i++)
		sum += job->ranges[i].remote_chunks;
	return sum;
}

static void fill_result(struct run *run, int error)
{
	struct ktask_result *result = run->ctl->result;
	const struct kt_worker *failed =
		kt_undo_lowest(run_worker_at, run, run->nr_seated + 1);

	result->error = error;
	result->fail_error = failed ? failed->error : 0;
	result->fail_pos = failed ? failed->fail.start : NULL;
	result->threads = run->threads;
	result->helpers_lent = run->lent;
	result->chunks = run->chunks;
	result->remote_chunks = remote_chunks(&run->job);
	result->units = run->units;
	result->wall_ns = kt_now_ns() - run->start_ns;
}

static void count(struct run *run, int error)
{
	u64 wall_ns = kt_now_ns() - run->start_ns;

	trace_ktask_job_end(run->ctl->thread_func, error, run->units, wall_ns,
			    run->threads);
	stats_add(run->nr_seats ? STAT_JOBS : STAT_ALONE, 1);
	stats_add(STAT_FAILED, error != 0);
	/* Helpers have counted theirs. */
	stats_add(STAT_CHUNKS, run->caller.chunks);
	stats_add(STAT_UNITS, run->caller.units);
	stats_add(STAT_REMOTE, remote_chunks(&run->job));
	stats_add(STAT_SEATED, run->threads - (run->caller.chunks > 0));
	stats_add(STAT_LENT, run->lent);
	if (run->nr_seats)
		stats_add(STAT_WALL_NS, wall_ns);
}

int run_end(struct run *run)
{
	int error;

	demand_end(run->demand);
	run_withdraw_offers(run);
	run_wait_for_helpers(run);
	run_end_workers(run);
	run->chunks += run->caller.chunks;
	run->units += run->caller.units;
	run->threads += run->caller.chunks > 0;
	error = kt_job_error(&run->job);
	if (error)
		kt_undo(&run->job, run_worker_at, run, run->nr_seated + 1);
	count(run, error);
	if (run->ctl->result)
		fill_result(run, error);
	kfree(run->seats);
	return error;
}

void run_work(struct run *run)
{
	struct run_context context;

	if (!run->nr_seats) {
		kt_job_work(&run->job, &run->caller);
		return;
	}
	run_enter(&context, run);
	kt_job_work(&run->job, &run->caller);
	run_leave(&context);
}

int run_init(struct run *run, struct kt_range *ranges,
	     const struct ktask_node *nodes, size_t nr_nodes,
	     const struct ktask_ctl *ctl)
{
	size_t i;
	int error;

	for (i = 0; i < nr_nodes; i++)
		init_range(&ranges[i], &nodes[i]);
	init_state(run, ctl);
	init_job(&run->job, ctl);
	run->job.ranges = ranges;
	run->job.nr_ranges = (unsigned int)nr_nodes;
	error = kt_job_check(&run->job);
	if (error)
		return error;
	kt_job_begin(&run->job);
	kt_worker_begin(&run->caller, &run->job, numa_node_id(), 0);
	run->caller.tick = caller_tick;
	run->units_total = kt_job_units(&run->job);
	return 0;
}

/* A frame of its own: a struct run is large. */
static noinline int run_table(struct kt_range *ranges,
			      const struct ktask_node *nodes, size_t nr_nodes,
			      const struct ktask_ctl *ctl)
{
	struct run run;
	int error = run_init(&run, ranges, nodes, nr_nodes, ctl);

	if (error)
		return error;
	run_stop_if_killed(&run);
	run_begin(&run, false);
	run_work(&run);
	return run_end(&run);
}

/* ---- what clients call ---- */

int run_check(const struct ktask_ctl *ctl, const struct ktask_node *nodes,
	      size_t nr_nodes)
{
	size_t i;

	if (!ctl || (!nodes && nr_nodes) || nr_nodes > UINT_MAX ||
	    (ctl->flags & ~KTASK_FLAGS))
		return -EINVAL;
	if ((ctl->flags & (KTASK_CALLER_MM | KTASK_CALLER_PROCESS)) &&
	    !current->mm)
		return -EINVAL;
	for (i = 0; i < nr_nodes; i++)
		if (nodes[i].nid < NUMA_NO_NODE)
			return -EINVAL;
	return 0;
}

/**
 * ktask_run - do a job with the caller and helpers, and wait for it
 * @start: first position
 * @task_size: units of work; 0 does nothing and succeeds
 * @ctl: how to do it
 *
 * Context: process context; may sleep; any lock under which one may sleep.
 *
 * Return: 0; what a chunk returned, the first error in time; -EINVAL before
 * anything ran: no thread function, minimum chunk 0, alignment not a power of
 * two, unknown flags, a range that runs past the end of the address space;
 * -ETIMEDOUT after the deadline; -EINTR if killed and KTASK_KILLABLE.
 */
int ktask_run(void *start, size_t task_size, const struct ktask_ctl *ctl)
{
	struct ktask_node any = { start, task_size, NUMA_NO_NODE };
	struct kt_range range;
	int error = run_check(ctl, &any, 1);

	return error ? error : run_table(&range, &any, 1, ctl);
}
EXPORT_SYMBOL_GPL(ktask_run);

/* The end of a range that has succeeded: the iterator tells it once more. */
static void *end_of(const struct ktask_node *node, const struct ktask_ctl *ctl)
{
	ktask_iter_func iter =
		ctl->iter_func ? ctl->iter_func : ktask_iter_range;

	return iter(node->start, node->task_size);
}

static void add_result(struct ktask_result *sum, const struct ktask_result *r)
{
	sum->error = r->error;
	sum->fail_error = r->fail_error;
	sum->fail_pos = r->fail_pos;
	sum->threads = max(sum->threads, r->threads);
	sum->helpers_lent += r->helpers_lent;
	sum->chunks += r->chunks;
	sum->remote_chunks += r->remote_chunks;
	sum->units += r->units;
	sum->wall_ns += r->wall_ns;
}

static void undo_ranges(const struct ktask_node *nodes, size_t nr,
			const struct ktask_ctl *ctl)
{
	size_t i;

	for (i = 0; ctl->undo_func && i < nr; i++)
		if (nodes[i].task_size)
			ctl->undo_func(nodes[i].start, end_of(&nodes[i], ctl),
				       ctl->func_arg);
}

/* Nothing runs if one of them is malformed. */
static int check_each(const struct ktask_node *nodes, size_t nr_nodes,
		      const struct ktask_ctl *ctl)
{
	struct kt_range range;
	struct kt_job job;
	int error = 0;
	size_t i;

	init_job(&job, ctl);
	job.ranges = &range;
	job.nr_ranges = 1;
	for (i = 0; i < nr_nodes && !error; i++) {
		init_range(&range, &nodes[i]);
		error = kt_job_check(&job);
	}
	return error;
}

/* Without memory for a table: one range after another. */
static noinline int run_one_by_one(const struct ktask_node *nodes,
				   size_t nr_nodes, const struct ktask_ctl *ctl)
{
	u64 start_ns = kt_now_ns();
	struct ktask_result sum = {}, one;
	struct ktask_ctl each = *ctl;
	int error = check_each(nodes, nr_nodes, ctl);
	size_t i;

	if (error)
		return error;
	each.result = &one;
	for (i = 0; i < nr_nodes; i++) {
		u64 past_ns = kt_now_ns() - start_ns;

		/* 0 would be none; a nanosecond is over at once. */
		if (ctl->deadline_ns)
			each.deadline_ns = ctl->deadline_ns > past_ns
						   ? ctl->deadline_ns - past_ns
						   : 1;
		error = ktask_run(nodes[i].start, nodes[i].task_size, &each);
		add_result(&sum, &one);
		if (error)
			break;
	}
	/* Range i has undone itself. */
	if (error)
		undo_ranges(nodes, i, ctl);
	if (ctl->result)
		*ctl->result = sum;
	return error;
}

/**
 * ktask_run_numa - ktask_run() over ranges that belong to nodes
 * @nodes: the ranges; several may name the same node
 * @nr_nodes: how many
 * @ctl: how to do it
 *
 * A thread takes chunks of its own node first, then of the nearest node that
 * has work left.
 *
 * Context: as ktask_run().
 *
 * Return: as ktask_run(); -EINVAL also for a node below NUMA_NO_NODE.
 */
int ktask_run_numa(const struct ktask_node *nodes, size_t nr_nodes,
		   const struct ktask_ctl *ctl)
{
	int error = run_check(ctl, nodes, nr_nodes);
	struct kt_range *ranges;

	if (error)
		return error;
	/* Never into reclaim: the caller may hold locks that it takes. */
	ranges = kmalloc_array(max_t(size_t, nr_nodes, 1), sizeof(*ranges),
			       GFP_NOWAIT | __GFP_NOWARN);
	if (!ranges)
		return run_one_by_one(nodes, nr_nodes, ctl);
	error = run_table(ranges, nodes, nr_nodes, ctl);
	kfree(ranges);
	return error;
}
EXPORT_SYMBOL_GPL(ktask_run_numa);

/**
 * ktask_iter_range - the default iterator: positions are addresses
 * @position: where the next chunk starts
 * @size: bytes that the chunk shall have
 *
 * Context: any.
 *
 * Return: the address @size bytes further.
 */
void *ktask_iter_range(void *position, size_t size)
{
	return (char *)position + size;
}
EXPORT_SYMBOL_GPL(ktask_iter_range);
