/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One job beside other load, and how long it takes: schedule_time() and schedule_plain()
 * of schedule.h.
 */
#include <string.h>

#include "tests/sim/support/plan.h"

#define HELPERS_SLEEP_NS 100000

struct timed {
	struct tracked_plan plan;
	struct hog hogs[24];
	unsigned nr_hogs, nr_helpers, permits;
};

/* Two on each CPU, which never end. */
static void overload_cpus(struct timed *timed)
{
	timed->nr_hogs =
		plan_hogs(timed->hogs, 2 * the_world.machine.nr_cpus, 100);
	for (unsigned i = 0; i < timed->nr_hogs; i++) {
		timed->hogs[i].from_ns = 0;
		timed->hogs[i].to_ns = SIM_NEVER;
	}
}

static void plan_timed(struct timed *timed)
{
	struct sim_machine *m = &the_world.machine;
	struct tracked_plan *plan = &timed->plan;

	m->nr_cpus = 2 + (unsigned)draw_below(7);
	m->nr_nodes = 1;
	m->slice_ns = 100000;
	m->point_ns = 5;
	memset(plan, 0, sizeof(*plan));
	plan->nr_ranges = 1;
	plan->nodes[0] = KT_NO_NODE;
	plan->units[0] = 1 + draw_below(1000);
	plan->unit_ns = 1000 + draw_below(draw_chance(50) ? 20000 : 200000);
	plan->expensive_every =
		draw_chance(20) ? 2 + (unsigned)draw_below(40) : 0;
	plan->min_chunk = 1 + draw_below(4);
	plan->align = 1;
	plan->target_ns = 1000000;
	plan->fork_unit = UINT64_MAX;
	plan->max_threads = m->nr_cpus;
	plan->capacity = HELPERS_MAX;
	plan->pace = &all_paces[0];
	timed->nr_helpers = m->nr_cpus - 1;
	timed->permits = KT_MAX(m->nr_cpus * 4 / 5, 1);
	the_world.processes[0].never_percent = draw_chance(20) ? 50 : 0;
	timed->nr_hogs = plan_hogs(timed->hogs, 2 * m->nr_cpus,
				   (unsigned)draw_below(100));
	if (draw_chance(12))
		overload_cpus(timed);
}

static uint64_t timed_begin_ns;

static void note_begin(struct sim_job *job)
{
	timed_begin_ns = sim_now();
}

/* Are there more threads than CPUs from beginning to end? */
static bool always_overloaded(const struct timed *timed)
{
	unsigned nr = 1;

	for (unsigned i = 0; i < timed->nr_hogs; i++)
		nr += !timed->hogs[i].from_ns &&
		      timed->hogs[i].to_ns == SIM_NEVER;
	return nr > the_world.machine.nr_cpus;
}

/* Once helpers have fallen asleep. */
static void timed_main(void *arg)
{
	sim_block(HELPERS_SLEEP_NS);
	tracked_run(arg);
}

/* With other load from long before, so that CPUs have their history. */
static const char *run_timed(const struct timed *timed, uint64_t seed,
			     struct tracked **job, uint64_t *ns)
{
	struct sim_process *process = &the_world.processes[0];
	/* On one CPU: else luck decides beside whom it runs. */
	struct sim_cpus cpus = { { 1 } };
	const char *why;

	sim_reset(&the_world.machine, seed);
	sim_host_reset(timed->permits);
	fail_without_end();
	start_hogs(timed->hogs, timed->nr_hogs, the_world.machine.nr_cpus);
	process->helpers = the_world.helpers[0];
	sim_process_init(process, timed->nr_helpers);
	*job = tracked_alloc(sizeof(**job));
	tracked_init(*job, &timed->plan, process, NULL, the_world.stats);
	(*job)->job.begun = note_begin;
	sim_spawn("caller", timed_main, *job, SIM_WEIGHT_NORMAL, &cpus, false);
	why = sim_run();
	*ns = sim_now() - timed_begin_ns;
	return why;
}

/* Hog i is on CPU i % nr_cpus, and the caller on 0. */
static uint64_t turn_ns(const struct timed *timed, unsigned cpu)
{
	uint64_t weight = SIM_WEIGHT_NORMAL;

	for (unsigned i = cpu; i < timed->nr_hogs;
	     i += the_world.machine.nr_cpus)
		weight += timed->hogs[i].weight;
	return the_world.machine.slice_ns * weight / SIM_WEIGHT_NORMAL;
}

static uint64_t longest_turn_ns(const struct timed *timed)
{
	uint64_t longest_ns = 0;

	for (unsigned i = 0; i < the_world.machine.nr_cpus; i++)
		longest_ns = KT_MAX(longest_ns, turn_ns(timed, i));
	return longest_ns;
}

static void plan_timed_world(uint64_t seed, struct schedule_stats *stats,
			     struct timed *timed)
{
	begin_plan(seed, stats);
	plan_timed(timed);
}

static const char *run_plain(struct timed *timed, uint64_t seed, uint64_t *ns)
{
	struct tracked *job;

	timed->plan.max_threads = 1;
	timed->nr_helpers = 0;
	return run_timed(timed, seed, &job, ns);
}

const char *schedule_time(uint64_t seed, struct schedule_time *time)
{
	struct schedule_stats stats = { 0 };
	struct timed timed;
	struct tracked *job;
	const char *why;

	plan_timed_world(seed, &stats, &timed);
	why = run_timed(&timed, seed, &job, &time->job_ns);
	if (why)
		return why;
	time->chunk_ns = job->longest_ns;
	time->work_ns = job->all_ns;
	time->turn_ns = turn_ns(&timed, 0);
	time->longest_turn_ns = longest_turn_ns(&timed);
	time->threads = job->job.ctx.threads;
	time->lent = job->job.ctx.lent;
	time->cpus = the_world.machine.nr_cpus;
	time->hogs = timed.nr_hogs;
	time->overloaded = always_overloaded(&timed);
	sim_trace("---- and by one thread ----");
	return run_plain(&timed, seed, &time->plain_ns);
}

const char *schedule_plain(uint64_t seed, uint64_t work_ns, uint64_t *ns)
{
	struct schedule_stats stats = { 0 };
	struct tracked_plan *plan;
	struct timed timed;
	uint64_t units;

	plan_timed_world(seed, &stats, &timed);
	plan = &timed.plan;
	units = plan->units[0];
	/* One of so many counts as ten. */
	if (plan->expensive_every)
		units += 9 * ((units - 1) / plan->expensive_every + 1);
	plan->unit_ns = (work_ns + units - 1) / units;
	sim_trace("---- and %llu ns of work by one thread ----",
		  (unsigned long long)work_ns);
	return run_plain(&timed, seed, ns);
}
