/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* length: all plans draw from one state, and all run in one world */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/support/schedule.h"
#include "tests/sim/support/tracked.h"

#define CALLERS_MAX 4
#define PROCESSES_MAX 2
#define HELPERS_MAX 16
#define NESTING_MAX 2
/* One schedule of so many has a job with a ramp. */
#define RAMP_EVERY 50
/* Nothing takes so long, but what never ends. */
#define NO_END_NS 3600000000000ull
#define HELPERS_SLEEP_NS 100000

/* The library's, the module's, and one that does much in little time. */
static const struct kt_pace all_paces[] = {
	{ 500000, 500000, 5000000, 1000000, 1000000, 0 },
	{ 50000, 500000, 5000000, 50000, 2000000, 5000000 },
	{ 2000, 10000, 50000, 5000, 10000, 0 },
};

/* Apart from the machine's own numbers: what a thread draws depends on how far
 * others are. */
static uint64_t plan_state;

static uint64_t draw_below(uint64_t bound)
{
	uint64_t random = sim_next_random(&plan_state);

	return bound ? random % bound : 0;
}

static bool draw_chance(unsigned percent)
{
	return draw_below(100) < percent;
}

struct caller {
	struct sim_thread *thread;
	struct sim_process *process;
	unsigned nr_jobs;
	struct tracked_plan plans[3];
};

static struct world {
	struct sim_machine machine;
	struct sim_process processes[PROCESSES_MAX];
	struct sim_helper helpers[PROCESSES_MAX][HELPERS_MAX];
	unsigned nr_processes, nr_callers;
	struct caller callers[CALLERS_MAX];
	struct tracked_plan nested;
	struct schedule_stats *stats;
	struct sim_cpus all;
	bool forks, ramps;
} the_world;

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
	plan->pace =
		&all_paces[draw_below(sizeof(all_paces) / sizeof(*all_paces))];
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

static void end_of_time(void *arg)
{
	sim_fail("no end is seen");
}

static uint64_t draw_time(void)
{
	return sim_now() + draw_below(draw_chance(50) ? 100000 : 2000000);
}

static void plan_events(const struct sim_machine *m)
{
	uintptr_t cpu = draw_below(m->nr_cpus);

	sim_at(sim_now() + NO_END_NS, end_of_time, NULL);
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

static struct hog {
	uint64_t from_ns, to_ns;
	unsigned weight;
} all_hogs[64];

static void hog_main(void *arg)
{
	const struct hog *hog = arg;

	if (sim_now() < hog->from_ns)
		sim_block(hog->from_ns - sim_now());
	while (sim_now() < hog->to_ns)
		sim_spend(500000);
}

static unsigned plan_hogs(struct hog *list, unsigned nr, unsigned percent)
{
	static const unsigned weights[] = { SIM_WEIGHT_IDLE, SIM_WEIGHT_NORMAL,
					    SIM_WEIGHT_NORMAL,
					    SIM_WEIGHT_HIGH };
	unsigned made = 0;

	for (unsigned i = 0; i < nr; i++) {
		struct hog *hog = &list[made];

		if (!draw_chance(percent))
			continue;
		hog->weight = weights[draw_below(4)];
		hog->from_ns = draw_chance(50)
				       ? 0
				       : SIM_START_NS + draw_below(30000000);
		hog->to_ns = draw_chance(70)
				     ? SIM_NEVER
				     : SIM_START_NS + draw_below(60000000);
		made++;
	}
	return made;
}

static void start_hogs(const struct hog *list, unsigned nr, unsigned nr_cpus)
{
	for (unsigned i = 0; i < nr; i++) {
		struct sim_cpus cpus = { 0 };

		sim_put_in(&cpus, i % nr_cpus);
		sim_spawn("hog", hog_main, (void *)&list[i], list[i].weight,
			  &cpus, true);
	}
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

	plan_state = seed * 2654435761u + 1;
	tracked_free_all();
	memset(&the_world, 0, sizeof(the_world));
	the_world.stats = stats;
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

/* ---- time ---- */

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
	sim_at(sim_now() + NO_END_NS, end_of_time, NULL);
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
	plan_state = seed * 2654435761u + 1;
	tracked_free_all();
	memset(&the_world, 0, sizeof(the_world));
	the_world.stats = stats;
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
