/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Schedules of all that may happen: see schedule.h.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/support/plan.h"

#define NESTING_MAX 2
/* One schedule of so many has a job with a ramp. */
#define RAMP_EVERY 50

static struct hog all_hogs[64];

/* ---- plans ---- */

static void plan_machine(struct sim_machine *m)
{
	m->nr_cpus = 1 + (unsigned)draw_below(draw_chance(20) ? 16 : 6);
	m->nr_nodes = draw_chance(30)
			      ? 1 + (unsigned)draw_below(KT_MIN(m->nr_cpus, 4))
			      : 1;
	m->slice_ns = draw_chance(50) ? 3000000 : 1000 + draw_below(50000);
	m->point_ns = draw_chance(70) ? 5 : 1 + (unsigned)draw_below(500);
	m->stall_one_in = draw_chance(50) ? 20 + (unsigned)draw_below(400) : 0;
	m->stall_ns = 1000 + draw_below(200000);
}

static void plan_ranges(struct tracked_plan *plan, unsigned nr_nodes)
{
	plan->nr_ranges = draw_chance(30) ? 1 + (unsigned)draw_below(3) : 1;
	for (unsigned i = 0; i < plan->nr_ranges; i++) {
		plan->units[i] = draw_below(draw_chance(80) ? 60 : 300);
		plan->nodes[i] = draw_chance(50) ? (int)draw_below(nr_nodes)
						 : KT_NO_NODE;
	}
}

static void plan_trouble(struct tracked_plan *plan)
{
	plan->fail_one_in = draw_chance(30) ? 2 + (unsigned)draw_below(30) : 0;
	plan->nest_one_in = draw_chance(10) ? 2 + (unsigned)draw_below(10) : 0;
	plan->fork_unit = UINT64_MAX;
	plan->timeout_ns = draw_chance(8) ? 1 + draw_below(300000) : 0;
	plan->cancel_ns = draw_chance(40) ? 1 + draw_below(300000) : 0;
	plan->undoes = draw_chance(80);
	plan->iterated = draw_chance(15);
	plan->reports = draw_chance(10);
	plan->compensates = draw_chance(10);
}

static void plan_job(struct tracked_plan *plan, const struct sim_machine *m)
{
	memset(plan, 0, sizeof(*plan));
	plan_ranges(plan, m->nr_nodes);
	plan_trouble(plan);
	plan->min_chunk = 1 + draw_below(draw_chance(70) ? 3 : 20);
	plan->align = 1ull << (draw_chance(20) ? draw_below(4) : 0);
	plan->target_ns = 1000 + draw_below(200000);
	plan->unit_ns = 20 + draw_below(draw_chance(70) ? 3000 : 100000);
	/* Long enough for other counts of threads to be tried. */
	if (draw_chance(5))
		plan->unit_ns += draw_below(3000000);
	plan->expensive_every =
		draw_chance(20) ? 2 + (unsigned)draw_below(40) : 0;
	plan->max_threads = 1 + (unsigned)draw_below(m->nr_cpus + 2);
	plan->capacity =
		draw_chance(85) ? HELPERS_MAX : (unsigned)draw_below(3);
	plan->fixed = draw_chance(15);
	plan->detached = draw_chance(20);
	plan->pace = &all_paces[draw_below(NR_PACES)];
}

/* Long enough, of enough threads and chunks; none if it is detached, fixed or has
 * compensating helpers. */
static void plan_ramp(struct tracked_plan *plan)
{
	plan->nr_ranges = 1;
	plan->units[0] = 1100 + draw_below(2900);
	plan->min_chunk = 1;
	plan->align = 1;
	plan->target_ns = 200000 + draw_below(800000);
	plan->unit_ns = 10000 + draw_below(190000);
	plan->max_threads = 8 + (unsigned)draw_below(9);
	plan->capacity = HELPERS_MAX;
	plan->timeout_ns *= 300;
	plan->cancel_ns *= 300;
}

/* ---- what happens beside ---- */

static void unplug_cpu(void *arg)
{
	unsigned cpu = (unsigned)(uintptr_t)arg;

	sim_trace("CPU %u goes", cpu);
	sim_set_online(cpu, false);
	sim_host_moved();
	the_world.stats->unplugged++;
}

static void plug_in(void *arg)
{
	sim_set_online((unsigned)(uintptr_t)arg, true);
	sim_host_moved();
}

static void change_permits(void *arg)
{
	sim_host_permits((unsigned)(uintptr_t)arg);
	the_world.stats->permit_changes++;
}

static void jump_clocks(void *arg)
{
	sim_host_jump((intptr_t)arg);
	the_world.stats->jumps++;
}

static uint64_t draw_time(void)
{
	return sim_now() + draw_below(draw_chance(50) ? 100000 : 2000000);
}

static void plan_events(const struct sim_machine *m)
{
	uintptr_t cpu = draw_below(m->nr_cpus);

	fail_without_end();
	if (draw_chance(20) && m->nr_cpus > 1 && cpu) {
		uint64_t ns = draw_time();

		sim_at(ns, unplug_cpu, (void *)cpu);
		if (draw_chance(50))
			sim_at(ns + draw_below(200000), plug_in, (void *)cpu);
	}
	for (unsigned i = 0; i < 3 && draw_chance(25); i++)
		sim_at(draw_time(), change_permits,
		       (void *)(uintptr_t)draw_below(8));
	if (draw_chance(10))
		sim_at(draw_time(), jump_clocks,
		       (void *)((intptr_t)draw_below(20000000) - 10000000));
	if (draw_chance(10))
		sim_host_clocks(1 + draw_below(100000));
}

/* ---- callers ---- */

static void run_nested(struct tracked *outer)
{
	struct tracked *t;

	if (outer->nesting >= NESTING_MAX)
		return;
	t = tracked_alloc(sizeof(*t));
	tracked_init(t, &the_world.nested, outer->job.process, outer,
		     the_world.stats);
	t->nest = run_nested;
	tracked_run(t);
	the_world.stats->nested++;
}

static void fork_process(struct tracked *t)
{
	struct sim_process *process = t->job.process;

	if (process->child)
		return;
	the_world.stats->forks++;
	for (struct tracked *job = t; job;
	     job = (struct tracked *)job->job.outer) {
		job->cancelled = true;
		job->root->helpers_in = 0;
		if (job->manager)
			sim_kill(job->manager);
	}
	for (unsigned i = 0; i < the_world.nr_callers; i++) {
		struct caller *caller = &the_world.callers[i];

		if (caller->process == process && caller->thread != sim_self())
			sim_kill(caller->thread);
	}
	sim_process_fork(process);
}

static void poll_job(void *arg)
{
	struct tracked *t = arg;

	if (kt_context_units(&t->job.ctx) > t->job.ctx.units_total)
		sim_fail("progress of a detached job");
	if (kt_context_settled(&t->job.ctx) && t->root->helpers_in &&
	    t->root == t)
		sim_fail("a job is settled with a helper in a chunk");
}

static int run_detached(struct tracked *t)
{
	const struct tracked_plan *plan = t->plan;

	t->caller = sim_self();
	sim_job_begin(&t->job, plan->max_threads, plan->timeout_ns);
	the_world.stats->detached++;
	for (uint64_t i = sim_random(4); i; i--) {
		sim_block(1 + sim_random(50000));
		poll_job(t);
		sim_job_resubmit(&t->job);
	}
	if (plan->cancel_ns && !kt_job_idle(&t->job.ctx.job)) {
		t->cancelled = true;
		kt_job_stop(&t->job.ctx.job, -ECANCELED);
	}
	kt_store(&t->job.ctx.detached, false);
	return sim_job_finish(&t->job);
}

static void caller_main(void *arg)
{
	struct caller *caller = arg;

	for (unsigned i = 0; i < caller->nr_jobs; i++) {
		struct tracked *t = tracked_alloc(sizeof(*t));

		tracked_init(t, &caller->plans[i], caller->process, NULL,
			     the_world.stats);
		t->nest = run_nested;
		t->fork = fork_process;
		if (caller->plans[i].detached)
			tracked_check(t, run_detached(t));
		else
			tracked_run(t);
	}
}

static void start_caller(unsigned index)
{
	struct caller *caller = &the_world.callers[index];
	char name[16] = "caller  ";

	caller->process =
		&the_world.processes[draw_below(the_world.nr_processes)];
	caller->nr_jobs = 1 + (unsigned)draw_below(draw_chance(30) ? 3 : 1);
	for (unsigned i = 0; i < caller->nr_jobs; i++)
		plan_job(&caller->plans[i], &the_world.machine);
	if (the_world.ramps && !index)
		plan_ramp(&caller->plans[0]);
	if (the_world.forks)
		caller->plans[0].fork_unit = draw_below(40);
	name[7] = (char)('1' + index);
	caller->thread = sim_spawn(name, caller_main, caller, SIM_WEIGHT_NORMAL,
				   &the_world.all, false);
}

static void start_processes(void)
{
	the_world.nr_processes = 1 + draw_chance(20);
	for (unsigned i = 0; i < the_world.nr_processes; i++) {
		struct sim_process *process = &the_world.processes[i];

		process->helpers = the_world.helpers[i];
		process->never_percent =
			draw_chance(25) ? (unsigned)draw_below(100) : 0;
		process->elsewhere_one_in = 16;
		process->preferred_one_in = draw_chance(30) ? 3 : 0;
		sim_process_init(process, (unsigned)draw_below(HELPERS_MAX));
		if (draw_chance(20))
			process->machine.limit = (uint32_t)draw_below(4);
	}
}

/* What the parent of a fork holds, nobody follows. */
static void check_permits(void)
{
	unsigned parents = 0;

	for (unsigned i = 0; i < the_world.nr_processes; i++) {
		const struct sim_process *process = &the_world.processes[i];

		parents += process->parents;
		if (process->machine.used)
			sim_fail("%u permits of a process are lost",
				 process->machine.used);
		for (unsigned n = 0; n < SIM_NODES_MAX; n++)
			if (process->nodes[n].used)
				sim_fail("%u permits of a node are lost",
					 process->nodes[n].used);
	}
	if (sim_host_permits_used() != parents)
		sim_fail("%u shared permits are lost",
			 sim_host_permits_used() - parents);
}

const char *schedule_check(uint64_t seed, struct schedule_stats *stats)
{
	const char *why;

	begin_plan(seed, stats);
	plan_machine(&the_world.machine);
	/* Not drawn: the other schedules stay what they were. */
	the_world.ramps = seed % RAMP_EVERY == 0;
	if (the_world.ramps)
		the_world.machine.nr_cpus = 8 + (unsigned)draw_below(9);
	sim_reset(&the_world.machine, seed);
	sim_host_reset((unsigned)draw_below(the_world.machine.nr_cpus + 2));
	memset(&the_world.all, 0xff, sizeof(the_world.all));
	the_world.forks = draw_chance(5);
	start_processes();
	plan_events(&the_world.machine);
	plan_job(&the_world.nested, &the_world.machine);
	the_world.nested.detached = false;
	the_world.nested.units[0] %= 20;
	the_world.nested.nr_ranges = 1;
	start_hogs(all_hogs,
		   plan_hogs(all_hogs, the_world.machine.nr_cpus,
			     draw_chance(30) ? 50 : 0),
		   the_world.machine.nr_cpus);
	the_world.nr_callers =
		draw_chance(30) ? 1 + (unsigned)draw_below(CALLERS_MAX) : 1;
	for (unsigned i = 0; i < the_world.nr_callers; i++)
		start_caller(i);
	why = sim_run();
	if (why)
		return why;
	check_permits();
	stats->points += sim_nr_points();
	return sim_run();
}

bool schedule_each(uint64_t nr, void (*check)(uint64_t seed))
{
	const char *seed = getenv("KTASK_TEST_SEED");

	if (seed) {
		sim_traced = true;
		check(strtoull(seed, NULL, 0));
		return false;
	}
	for (uint64_t i = 1; i <= nr; i++)
		check(i);
	return true;
}
