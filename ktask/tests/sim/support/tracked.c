/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <stdlib.h>
#include <string.h>

#include "sim/sim_rules.h"
#include "tests/sim/support/schedule.h"
#include "tests/sim/support/tracked.h"

struct block {
	struct block *next;
	char pad[64 - sizeof(struct block *)];
	char memory[];
};

static struct block *all_blocks;

void *tracked_alloc(size_t size)
{
	struct block *block =
		aligned_alloc(64, (sizeof(*block) + size + 63) / 64 * 64);

	if (!block)
		abort();
	memset(block->memory, 0, size);
	block->next = all_blocks;
	all_blocks = block;
	return block->memory;
}

void tracked_free_all(void)
{
	while (all_blocks) {
		struct block *next = all_blocks->next;

		free(all_blocks);
		all_blocks = next;
	}
}

enum unit { UNIT_NEW, UNIT_TAKEN, UNIT_DONE, UNIT_UNDONE };

#define RANGE_SHIFT 24

/* Each failed chunk of a job has an error of its own, from here on. */
#define FIRST_FAILURE 1000

static void *position_of(unsigned range, uint64_t unit)
{
	return (void *)(((uintptr_t)range + 1) << RANGE_SHIFT | unit);
}

/* Index of a position among all units of the job. */
static uint64_t unit_at(const struct tracked *t, const void *pos)
{
	uint64_t range = ((uintptr_t)pos >> RANGE_SHIFT) - 1;

	return t->first[range] + ((uintptr_t)pos & ((1ul << RANGE_SHIFT) - 1));
}

static void take_units(struct tracked *t, uint64_t from, uint64_t to)
{
	if (from >= to || to > t->job.ctx.units_total)
		sim_fail("a chunk [%llu, %llu) outside of the job",
			 (unsigned long long)from, (unsigned long long)to);
	for (uint64_t i = from; i < to; i++) {
		if (t->units[i] != UNIT_NEW)
			sim_fail("unit %llu is done twice",
				 (unsigned long long)i);
		t->units[i] = UNIT_TAKEN;
	}
	t->taken += to - from;
	if (t->taken == t->job.ctx.units_total)
		t->all_taken_ns = kt_now_ns();
}

/* Without kt_load(): another thread may not run in between. */
static void watch_error(struct tracked *t)
{
	int error = (int)t->job.ctx.job.error;

	if (t->first_error && error != t->first_error)
		sim_fail("the error of a job changes from %d to %d",
			 t->first_error, error);
	t->first_error = error;
}

static uint64_t cost_ns(const struct tracked *t, uint64_t from, uint64_t to)
{
	const struct tracked_plan *plan = t->plan;
	uint64_t ns = (to - from) * plan->unit_ns;

	for (uint64_t i = from; plan->expensive_every && i < to; i++)
		if (i % plan->expensive_every == 0)
			ns += 9 * plan->unit_ns;
	return ns;
}

static bool one_in(unsigned n)
{
	return n && !sim_random(n);
}

/* The parts of a chunk that are not its work. */
static void do_extras(struct tracked *t, uint64_t from, uint64_t to)
{
	if (t->nest && one_in(t->plan->nest_one_in))
		t->nest(t);
	if (!t->fork || t->plan->fork_unit < from || t->plan->fork_unit >= to)
		return;
	t->fork(t);
	if (t->nest && one_in(2))
		t->nest(t);
}

static int do_chunk(void *start, void *end, void *arg)
{
	struct tracked *t = arg, *root = t->root;
	uint64_t from = unit_at(t, start);
	uint64_t to = from + (uint64_t)((char *)end - (char *)start);
	bool helper = sim_has_permit(), fails;
	uint64_t ns;

	if (t->over)
		sim_fail("a chunk of a job that is over");
	sim_chunk_begins();
	watch_error(t);
	t->ramped |= t->job.ctx.ramping;
	take_units(t, from, to);
	root->helpers_in += helper;
	if (root->helpers_in >= root->plan->max_threads)
		sim_fail("%u helpers in a job of %u threads", root->helpers_in,
			 root->plan->max_threads);
	ns = cost_ns(t, from, to);
	t->all_ns += ns;
	t->longest_ns = KT_MAX(t->longest_ns, ns);
	sim_spend(ns / 2);
	do_extras(t, from, to);
	sim_spend(ns - ns / 2);
	/* A child of a fork counts anew. */
	if (!t->job.ctx.orphan)
		root->helpers_in -= helper;
	t->stats->chunks++;
	t->stats->helper_chunks += helper;
	if (t->over)
		sim_fail("a job ended before its chunk");
	watch_error(t);
	fails = one_in(t->plan->fail_one_in);
	sim_chunk_ends(!fails);
	if (fails)
		return -(FIRST_FAILURE + (int)t->nr_failed++);
	for (uint64_t i = from; i < to; i++)
		t->units[i] = UNIT_DONE;
	t->done += to - from;
	return 0;
}

static void undo_chunk(void *start, void *end, void *arg)
{
	struct tracked *t = arg;
	uint64_t from = unit_at(t, start);
	uint64_t to = from + (uint64_t)((char *)end - (char *)start);

	if (t->job.ctx.orphan)
		sim_fail("the child of a fork undoes what its parent did");
	if (from < t->undone_to || from >= to || to > t->job.ctx.units_total)
		sim_fail("undo of [%llu, %llu) after %llu",
			 (unsigned long long)from, (unsigned long long)to,
			 (unsigned long long)t->undone_to);
	t->undone_to = to;
	for (uint64_t i = from; i < to; i++) {
		if (t->units[i] != UNIT_DONE)
			sim_fail("undo of unit %llu, which was not done",
				 (unsigned long long)i);
		t->units[i] = UNIT_UNDONE;
	}
	t->nr_undone++;
}

static void *next_position(void *pos, size_t size)
{
	sim_point();
	return (char *)pos + size;
}

/* A compensating helper that leaves may be counted twice for a moment: not the
 * caller collects it. */
static void check_progress(const struct tracked *t, uint64_t units)
{
	uint64_t most = t->plan->compensates ? t->job.ctx.units_total : t->done;
	uint64_t least = t->plan->compensates ? 0 : t->reported;

	if (sim_self() != t->caller)
		sim_fail("progress is reported by %s", sim_name(sim_self()));
	if (units > most || units < least)
		sim_fail("progress of %llu units, after %llu and of %llu",
			 (unsigned long long)units, (unsigned long long)least,
			 (unsigned long long)most);
}

static int report_progress(struct kt_context *ctx, bool last)
{
	struct tracked *t = (struct tracked *)ctx;
	uint64_t units = kt_context_units(ctx);

	rules_reported(&t->job, last);
	check_progress(t, units);
	if (last && units != t->done)
		sim_fail("progress of %llu units at the end, %llu were done",
			 (unsigned long long)units,
			 (unsigned long long)t->done);
	t->reported = units;
	t->stats->reports++;
	if (last || sim_random(50))
		return 0;
	t->cancelled = true;
	return 1;
}

/* As the library's concurrency manager, but with a random number of helpers. */
static void manage_others(void *arg)
{
	struct tracked *t = arg;

	while (!kt_load(&t->manager_stops)) {
		rules_compensate(&t->job,
				 (unsigned)sim_random(TRACKED_OTHERS + 1));
		sim_block(1 + sim_random(50000));
	}
	t->manager_left = true;
	sim_wake(t->caller);
}

static void start_manager(struct sim_job *job)
{
	struct tracked *t = (struct tracked *)job;

	t->manager = sim_spawn("manager", manage_others, t, SIM_WEIGHT_NORMAL,
			       &job->process->cpus, true);
}

static void stop_manager(struct sim_job *job)
{
	struct tracked *t = (struct tracked *)job;

	t->caller = sim_self();
	kt_store(&t->manager_stops, true);
	sim_wake(t->manager);
	while (!kt_load(&t->manager_left))
		sim_block(SIM_NEVER);
}

static void add_manager(struct tracked *t)
{
	t->others.items =
		tracked_alloc(TRACKED_OTHERS * sizeof(*t->others.items));
	t->others.nr = TRACKED_OTHERS;
	t->job.ctx.compensating = &t->others;
	t->job.begun = start_manager;
	t->job.draining = stop_manager;
}

static void fill_ranges(struct tracked *t)
{
	const struct tracked_plan *plan = t->plan;
	uint64_t sum = 0;

	for (unsigned i = 0; i < plan->nr_ranges; i++) {
		t->job.ranges[i].start = position_of(i, 0);
		t->job.ranges[i].units = plan->units[i];
		t->job.ranges[i].node = plan->nodes[i];
		t->first[i] = sum;
		sum += plan->units[i];
	}
	t->units = tracked_alloc(sum + 1);
}

static void fill_job(struct tracked *t)
{
	const struct tracked_plan *plan = t->plan;
	struct kt_job *job = &t->job.ctx.job;

	job->func = do_chunk;
	job->undo = plan->undoes ? undo_chunk : NULL;
	job->iter = plan->iterated ? next_position : NULL;
	job->arg = t;
	job->split.min_chunk = plan->min_chunk;
	job->split.align = plan->align;
	job->split.target_ns = plan->target_ns;
	job->ranges = t->job.ranges;
	job->nr_ranges = plan->nr_ranges;
}

void tracked_init(struct tracked *t, const struct tracked_plan *plan,
		  struct sim_process *process, struct tracked *outer,
		  struct schedule_stats *stats)
{
	memset(t, 0, sizeof(*t));
	/* A context holds what another job left: the engine must reset it. */
	if (plan->max_threads % 2)
		memset(&t->job.ctx, 0xa5, sizeof(t->job.ctx));
	t->plan = plan;
	t->stats = stats;
	t->root = outer && !plan->detached ? outer->root : t;
	t->nesting = outer ? outer->nesting + 1 : 0;
	t->job.process = process;
	t->job.max_items = plan->capacity;
	t->job.items = tracked_alloc(plan->capacity * sizeof(*t->job.items));
	fill_ranges(t);
	fill_job(t);
	if (kt_context_init(&t->job.ctx, plan->pace))
		sim_fail("a job of good shape is refused");
	t->job.ctx.fixed = plan->fixed;
	t->job.ctx.detached = plan->detached;
	t->job.ctx.measure_cpu = true;
	t->job.ctx.progress_ns = 100000;
	t->job.ctx.progress = plan->reports ? report_progress : NULL;
	if (plan->compensates)
		add_manager(t);
}

int tracked_run(struct tracked *t)
{
	int error;

	t->caller = sim_self();
	error = sim_job_run(&t->job, t->plan->max_threads, t->plan->timeout_ns);
	tracked_check(t, error);
	return error;
}

static void check_error(const struct tracked *t, int error)
{
	if (t->nr_failed && !error)
		sim_fail("a job succeeds although %u chunks failed",
			 t->nr_failed);
	if (error <= -FIRST_FAILURE &&
	    (unsigned)(-error - FIRST_FAILURE) >= t->nr_failed)
		sim_fail("a job fails although no chunk did");
	if (t->first_error && error != t->first_error)
		sim_fail("a job fails with %d, its first error was %d", error,
			 t->first_error);
	if (error == -ECANCELED && !t->cancelled)
		sim_fail("a job is cancelled although nobody asked");
	if (error == -ETIMEDOUT && !t->plan->timeout_ns)
		sim_fail("a job without a deadline meets it");
	if (error > -FIRST_FAILURE && error && error != -ECANCELED &&
	    error != -ETIMEDOUT)
		sim_fail("a job fails with %d", error);
}

/* Nothing is left to claim when the last unit is taken. */
static void check_deadline(const struct tracked *t, int error)
{
	uint64_t deadline_ns = t->job.deadline_ns;

	if (error != -ETIMEDOUT || !deadline_ns || sim_clocks_differ())
		return;
	if (kt_now_ns() < deadline_ns)
		sim_fail("a job misses its deadline before that");
	if (t->taken == t->job.ctx.units_total && t->all_taken_ns < deadline_ns)
		sim_fail("a job misses its deadline with nothing left to do");
}

static void check_units(const struct tracked *t, int error)
{
	for (uint64_t i = 0; i < t->job.ctx.units_total; i++) {
		if (!error && t->units[i] != UNIT_DONE)
			sim_fail("unit %llu is not done, but the job succeeds",
				 (unsigned long long)i);
		if (error && t->plan->undoes && t->units[i] == UNIT_DONE)
			sim_fail("unit %llu is not undone",
				 (unsigned long long)i);
	}
}

/* In a ramp chunks are short. */
static void check_ramp(struct tracked *t)
{
	const struct kt_context *ctx = &t->job.ctx;

	if (!t->ramped || ctx->ramping)
		return;
	t->stats->ramps++;
	if (ctx->job.split.target_ns != t->plan->target_ns)
		sim_fail("chunks are to take %llu ns behind a ramp",
			 (unsigned long long)ctx->job.split.target_ns);
}

void tracked_check(struct tracked *t, int error)
{
	const struct kt_context *ctx = &t->job.ctx;

	t->over = true;
	if (ctx->orphan) {
		if (!error)
			sim_fail("a job succeeds in the child of a fork");
		check_error(t, error);
		sim_job_check_over(&t->job);
		t->stats->orphans++;
		return;
	}
	sim_job_check_over(&t->job);
	check_error(t, error);
	check_deadline(t, error);
	if (t->plan->reports && !t->job.rules.ended)
		sim_fail("the end is not reported");
	check_units(t, error);
	check_ramp(t);
	if (ctx->units != t->done)
		sim_fail("%llu units are counted, %llu were done",
			 (unsigned long long)ctx->units,
			 (unsigned long long)t->done);
	if (ctx->threads != rules_threads(&t->job))
		sim_fail("%u threads are counted, %u did a chunk", ctx->threads,
			 rules_threads(&t->job));
	if (ctx->caller_cpu_ns + ctx->helper_cpu_ns < t->all_ns)
		sim_fail("%llu ns of CPU time are counted, chunks took %llu",
			 (unsigned long long)(ctx->caller_cpu_ns +
					      ctx->helper_cpu_ns),
			 (unsigned long long)t->all_ns);
	for (unsigned i = 0; i < t->plan->nr_ranges; i++)
		if (t->job.ranges[i].dealt > 1)
			sim_fail("range %u still counts %u threads", i,
				 t->job.ranges[i].dealt);
	t->stats->jobs++;
	t->stats->failed += error != 0;
	t->stats->undone += t->nr_undone;
	t->stats->lent += ctx->lent;
	t->stats->grown += t->job.grown;
	t->stats->compensating += t->others.threads;
	t->stats->cancelled += error == -ECANCELED;
	t->stats->late += error == -ETIMEDOUT;
	t->stats->yielded += t->job.nr_yielded;
	t->stats->starved += t->job.nr_starved;
	t->stats->of_children += t->job.process->child;
}
