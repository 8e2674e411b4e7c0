/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Run: a job from its control block to its end, as its caller drives it.
 *
 * The caller alone decides: between two of its chunks it reports progress,
 * adapts the number of threads, and seats more helpers or lets some leave
 * (lib/seats.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/claim.h"
#include "core/undo.h"
#include "lib/account.h"
#include "lib/monitor.h"
#include "lib/places.h"
#include "lib/remaining.h"
#include "lib/slots.h"
#include "lib/spares.h"
#include "lib/users.h"

/* How often the caller looks up from its work, and at policy. */
#define TICK_NS 500000
#define LOOK_NS 5000000
#define LOOK_SHORT_NS 1000000
/* A job shorter than a tick looks at policy when nobody did for so long. */
#define STALE_NS 1000000000
/* So long whether it blocks is asked at each tick. */
#define EARLY_NS 10000000
#define PROGRESS_MS 100
#define CHUNK_US 1000

/* ---- the caller ---- */

/* When a job of this process last looked at policy. */
static uint64_t policy_seen_ns;

uint64_t run_units(struct run *run)
{
	uint64_t units = kt_load(&run->caller.units) + kt_load(&run->units);

	for (unsigned i = 0; i < kt_load_acquire(&run->nr_seated); i++)
		units += kt_load(&run->seats[i].worker.units);
	return units + spares_units(run);
}

void run_progress(struct run *run, struct ktask_progress *progress)
{
	uint64_t now_ns = kt_now_ns();
	uint64_t done = run_units(run);
	uint64_t elapsed_ns =
		now_ns > run->start_ns ? now_ns - run->start_ns : 0;

	/* A helper that leaves may be counted twice for a moment. */
	done = KT_MIN(done, run->units_total);
	progress->units_done = done;
	progress->units_total = run->units_total;
	progress->elapsed_ns = elapsed_ns;
	progress->remaining_ns =
		remaining_ns(elapsed_ns, done, run->units_total - done);
	progress->threads = kt_load(&run->job.threads) + spares_working(run);
}

static void report_progress(struct run *run)
{
	const struct ktask_ctl *ctl = run->ctl;
	struct ktask_progress progress;
	unsigned ms = ctl->progress_ms ? ctl->progress_ms : PROGRESS_MS;

	run_progress(run, &progress);
	run->next_progress_ns =
		run->start_ns + progress.elapsed_ns + (uint64_t)ms * 1000000;
	if (ctl->progress_func(&progress, ctl->progress_arg))
		kt_job_stop(&run->job, -ECANCELED);
}

/* Policy may want fewer threads than tune does.  @look_ns: 0, by what was last
 * found of policy; else now. */
static unsigned allowed_threads(struct run *run, uint64_t now_ns,
				uint64_t look_ns)
{
	unsigned most = KT_MIN(run->nr_cpus, limits_now(look_ns));
	unsigned wanted = KT_MIN(run->wanted, most);
	unsigned working = kt_load(&run->job.threads);
	unsigned threads;

	if (slots_shared())
		users_look(look_ns);
	run->changes = slots_changes();
	threads = 1 +
		  slots_share(run->demand, wanted - 1, now_ns, &run->share_ns);
	/* A helper that waits for a slot, should the caller not look again for
	 * long: when it is this job's turn it might not be there. */
	if (now_ns == run->start_ns)
		threads = KT_MIN(threads + 1, wanted);
	/* Its helpers look for themselves: whom none is offered now has none
	 * later either. */
	if (run->alone)
		return threads;
	if (limits_idle_only())
		return KT_MIN(threads, limits_idle_threads(working));
	return limits_crowd_threads(working, threads, now_ns);
}

/* As many threads as are wanted and policy allows, looked at now. */
static void look(struct run *run, uint64_t now_ns)
{
	kt_store(&policy_seen_ns, now_ns);
	run->seat_ns = now_ns;
	places_renew(run, now_ns);
	if (run_helper_stuck(run, now_ns))
		limits_crowd_seen(now_ns);
	if (!kt_job_idle(&run->job) && !kt_job_stopped(&run->job))
		run_seat_threads(run, allowed_threads(run, now_ns, now_ns));
	spares_look(run, now_ns);
	slots_report(run->demand, run->job.threads - 1 + spares_working(run),
		     run_units(run));
	run->next_look_ns = KT_MIN(now_ns + LOOK_NS, run->share_ns);
	run->soon_look_ns = now_ns + LOOK_SHORT_NS;
	/* Fewer than wanted, or a helper that gives up its place. */
	if (run->job.threads < run->wanted || run->leaving)
		run->next_look_ns =
			KT_MIN(run->next_look_ns, run->soon_look_ns);
}

static unsigned wanted_threads(struct run *run, uint64_t now_ns)
{
	if (run->ctl->flags & KTASK_FIXED)
		return run->wanted;
	/* Then its watcher learns from the rate. */
	if (run->spares)
		return run->tune.max;
	return kt_tune_step(&run->tune, now_ns, run_units(run));
}

static bool time_to_look(const struct run *run, uint64_t now_ns)
{
	if (now_ns >= run->next_look_ns)
		return true;
	return run->demand >= 0 && now_ns >= run->soon_look_ns &&
	       slots_changes() != run->changes;
}

static bool caller_tick(struct kt_worker *worker, uint64_t now_ns)
{
	struct run *run =
		(struct run *)((char *)worker - offsetof(struct run, caller));
	unsigned wanted;

	if (now_ns < run->next_tick_ns)
		return false;
	if (run->spares)
		monitor_join();
	run->next_tick_ns = now_ns + TICK_NS;
	if (run->ctl->progress_func && now_ns >= run->next_progress_ns)
		report_progress(run);

	if (now_ns < run->start_ns + EARLY_NS)
		spares_look(run, now_ns);
	wanted = wanted_threads(run, now_ns);
	if (wanted == run->wanted && !time_to_look(run, now_ns))
		return false;
	run->wanted = wanted;
	look(run, now_ns);
	/* Tune must not learn from it. */
	if (run->job.threads < wanted)
		run->tune.settling = true;
	return false;
}

static void place_caller(struct run *run)
{
	run->caller.node = topo_here();
	run->caller.range = kt_claim_home(&run->job, run->caller.node, 0);
}

void run_work(struct run *run)
{
	struct run_context *context = run_context();
	struct run_context outer = *context;

	run->outer = outer.run;
	if (run->outer)
		kt_add(&run->outer->nested, 1);
	if (run->measure_cpu)
		run->caller_cpu_ns = run_cpu_ns();
	if (run->job.nr_ranges > 1)
		place_caller(run);
	context->run = run;
	context->worker = &run->caller;
	kt_job_work(&run->job, &run->caller);
	*context = outer;
}

/* ---- beginning ---- */

static int init_ranges(struct run *run, const struct ktask_node *nodes,
		       size_t nr_nodes)
{
	run->ranges = run->own_ranges;
	if (nr_nodes > UINT32_MAX)
		return -ENOMEM;
	if (nr_nodes > RUN_RANGES)
		run->ranges = aligned_alloc(_Alignof(struct kt_range),
					    nr_nodes * sizeof(*run->ranges));
	if (!run->ranges)
		return -ENOMEM;
	for (size_t i = 0; i < nr_nodes; i++) {
		run->ranges[i].start = nodes[i].start;
		run->ranges[i].units = nodes[i].task_size;
		run->ranges[i].node = nodes[i].nid;
	}
	run->job.ranges = run->ranges;
	run->job.nr_ranges = (unsigned)nr_nodes;
	return 0;
}

static void init_job(struct run *run, const struct ktask_ctl *ctl)
{
	struct kt_job *job = &run->job;

	job->func = ctl->thread_func;
	job->undo = ctl->undo_func;
	job->iter = ctl->iter_func == ktask_iter_range ? NULL : ctl->iter_func;
	job->arg = ctl->func_arg;
	job->split.min_chunk = ctl->min_chunk_size;
	job->split.align = ctl->align ? ctl->align : 1;
	job->split.target_ns =
		(uint64_t)(ctl->chunk_us ? ctl->chunk_us : CHUNK_US) * 1000;
}

static void init_state(struct run *run, const struct ktask_ctl *ctl)
{
	run->ctl = ctl;
	run->seats = run->own_seats;
	run->nr_seats = RUN_SEATS;
	run->nr_seated = 0;
	run->parent = run_context()->run;
	run->outer = NULL;
	run->nested = 0;
	run->spares = NULL;
	run->looked_ns = 0;
	run->orphan = 0;
	run->alone = false;
	run->demand = -1;
	run->changes = 0;
	run->leaving = false;
	run->measure_cpu = ctl->result != NULL || account_on();
	run->nodes = NULL;
	run->places = 0;
	run->chunks = 0;
	run->units = 0;
	run->helper_cpu_ns = 0;
	run->caller_cpu_ns = 0;
	run->threads = 0;
	run->lent = 0;
}

int run_init(struct run *run, const struct ktask_node *nodes, size_t nr_nodes,
	     const struct ktask_ctl *ctl)
{
	int error = init_ranges(run, nodes, nr_nodes);

	if (error)
		return error;
	init_state(run, ctl);
	init_job(run, ctl);
	error = kt_job_check(&run->job);
	if (error) {
		run_release(run);
		return error;
	}
	kt_job_begin(&run->job);
	kt_worker_begin(&run->caller, &run->job, KT_NO_NODE, 0);
	run->caller.tick = caller_tick;
	run->units_total = kt_job_units(&run->job);
	return 0;
}

void run_release(struct run *run)
{
	spares_release(run);
	if (run->ranges != run->own_ranges)
		free(run->ranges);
	if (run->seats != run->own_seats)
		free(run->seats);
	free(run->nodes);
}

/* More seats than fit; without memory the job does with fewer. */
static void make_seats(struct run *run, unsigned nr)
{
	struct run_seat *seats;

	if (nr <= RUN_SEATS)
		return;
	seats = aligned_alloc(64, (nr * sizeof(*seats) + 63) / 64 * 64);
	if (!seats)
		return;
	run->seats = seats;
	run->nr_seats = nr;
}

/* What policy and the client allow, whatever the size of the job. */
static unsigned max_threads(struct run *run)
{
	unsigned max = limits_threads(&run->affinity);

	if (run->ctl->max_threads)
		max = KT_MIN(max, run->ctl->max_threads);
	run->topo = topo_get();
	run->nr_cpus = places_begin(run);
	return KT_MIN(max, run->nr_cpus);
}

/* A nested job draws its helpers from the budget of the outermost one. */
static void share_budget(struct run *run, unsigned max)
{
	if (run->parent) {
		run->budget = run->parent->budget;
		return;
	}
	run->own_budget.used = 0;
	run->own_budget.limit = max - 1;
	run->budget = &run->own_budget;
}

/* Times of the run; the first progress report is due at the first tick. */
static void start_clocks(struct run *run)
{
	run->start_ns = kt_now_ns();
	run->seat_ns = run->start_ns;
	run->next_tick_ns = run->start_ns + TICK_NS;
	run->next_look_ns = run->start_ns;
	run->soon_look_ns = run->start_ns;
	run->share_ns = UINT64_MAX;
	run->next_progress_ns = run->start_ns;
	run->job.deadline_ns = 0;
	if (run->ctl->deadline_ns &&
	    run->ctl->deadline_ns <= UINT64_MAX - run->start_ns)
		run->job.deadline_ns = run->start_ns + run->ctl->deadline_ns;
}

static void begin_tune(struct run *run, unsigned max, bool started)
{
	/* Nobody adds threads to a started job until somebody waits for it. */
	bool all = started || (run->ctl->flags & KTASK_FIXED);

	kt_tune_begin(&run->tune, max, all ? max : 0, run->units_total,
		      run->start_ns);
	if (max > 1 && !all)
		run_begin_known(run, max);
	run->wanted = run->tune.threads;
}

void run_begin(struct run *run, bool started)
{
	bool seen = started || run->ctl->progress_func || run->ctl->deadline_ns;
	unsigned max = max_threads(run);

	run->alone = started;
	start_clocks(run);
	share_budget(run, max);
	max = kt_split_threads(run->units_total, run->job.split.min_chunk, max);
	pool_enter(max - 1, &run->cpus);
	run->generation = pool_generation();
	begin_tune(run, max, started);
	trace_job_start(run->ctl->name, run->units_total, run->wanted);
	if (max == 1) {
		/* Nobody looks and nobody helps: one chunk a range. */
		if (!seen)
			run->job.split.min_chunk = UINT64_MAX;
		return;
	}
	make_seats(run, max - 1);
	places_make(run);
	if (run->job.nr_ranges > 1 && !started) {
		place_caller(run);
		run->job.ranges[run->caller.range].dealt++;
	}
	run->demand = slots_demand_begin(run->wanted - 1, run->ctl->name,
					 run->units_total, run->start_ns);
	/* Looks take up to 150 us after a pause: helpers begin meanwhile. */
	run_seat_threads(run, allowed_threads(run, run->start_ns, 0));
	if (!started)
		spares_begin(run, run->start_ns);
	if (run->start_ns > kt_load(&policy_seen_ns) + STALE_NS)
		look(run, run->start_ns);
}

/* ---- the end ---- */

bool run_settled(struct run *run)
{
	if (!kt_job_stopped(&run->job) && !kt_job_idle(&run->job))
		return false;
	for (unsigned i = 0; i < run->nr_seated; i++)
		if (kt_load(&run->seats[i].seat.seated) &&
		    pool_seat_state(&run->seats[i].seat) == SEAT_RUNNING)
			return false;
	return spares_settled(run);
}

unsigned run_nr_workers(const struct run *run)
{
	return 1 + run->nr_seated + spares_nr(run);
}

const struct kt_worker *run_worker_at(void *host, unsigned index)
{
	struct run *run = host;

	if (index > run->nr_seated)
		return spares_worker_at(run, index - run->nr_seated - 1);
	return index ? &run->seats[index - 1].worker : &run->caller;
}

static void finish(struct run *run, int error)
{
	run->chunks += run->caller.chunks;
	run->threads += run->caller.chunks > 0;
	run->units += run->caller.units;
	if (run->measure_cpu)
		run->caller_cpu_ns = run_cpu_ns() - run->caller_cpu_ns;
	if (error && !run->orphan)
		kt_undo(&run->job, run_worker_at, run, run_nr_workers(run));
	run->end_ns = kt_now_ns();
	trace_job_end(run->ctl->name, error, run->units,
		      run->end_ns - run->start_ns, run->threads);
	if (run->ctl->result)
		result_fill(run->ctl->result, run, error);
	if (!run->orphan)
		run_remember(run, error);
}

static void last_progress(struct run *run)
{
	struct ktask_progress progress;

	if (!run->ctl->progress_func || run->orphan)
		return;
	run_progress(run, &progress);
	progress.remaining_ns = 0;
	progress.threads = 1;
	run->ctl->progress_func(&progress, run->ctl->progress_arg);
}

void run_check_fork(struct run *run)
{
	pool_check_fork();
	if (run->generation == pool_generation() || run->orphan)
		return;
	run->orphan = 1;
	kt_job_stop(&run->job, -ECANCELED);
}

int run_end(struct run *run)
{
	int error;

	run->work_end_ns = kt_now_ns();
	run_check_fork(run);
	/* In the child of a fork the helpers, and their chunks, are gone. */
	monitor_leave();
	if (!run->orphan) {
		slots_demand_end(run->demand);
		run_withdraw_offers(run);
		spares_end(run);
		run_wait_for_helpers(run);
		pool_leave();
	}
	if (run->outer)
		kt_add(&run->outer->nested, (uint32_t)-1);
	last_progress(run);
	error = kt_job_error(&run->job);
	finish(run, error);
	return error;
}

/* The forking thread may be inside chunks of nested jobs: none of them can
 * be completed here, and undoing shared memory would undo the parent's. */
static void fork_child(void)
{
	for (struct run *run = run_context()->run; run; run = run->outer) {
		run->orphan = 1;
		run->budget->used = 0;
		kt_job_stop(&run->job, -ECANCELED);
	}
}

__attribute__((constructor)) static void watch_forks(void)
{
	pool_on_fork_child = fork_child;
}
