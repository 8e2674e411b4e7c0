/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/support/schedule.h"
#include "tests/sim/support/tracked.h"

#define CALLERS_MAX 4
#define PROCESSES_MAX 2
#define HELPERS_MAX 16
#define NESTING_MAX 2
/* Nothing takes so long, but what never ends. */
#define NO_END_NS 3600000000000ull
#define HELPERS_SLEEP_NS 100000

/* The library's, the module's, and one that does much in little time. */
static const struct kt_pace paces[] = {
	{ 500000, 500000, 5000000, 1000000, 1000000, 0 },
	{ 50000, 500000, 5000000, 50000, 2000000, 5000000 },
	{ 2000, 10000, 50000, 5000, 10000, 0 },
};

/* Apart from the machine's own numbers: what a thread draws depends on how far
 * others are. */
static uint64_t plan_state;

static uint64_t below(uint64_t bound)
{
	uint64_t random = sim_next_random(&plan_state);

	return bound ? random % bound : 0;
}

static bool chance(unsigned percent)
{
	return below(100) < percent;
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
	bool forks;
} world;

/* ---- plans ---- */

static void plan_machine(struct sim_machine *m)
{
	m->nr_cpus = 1 + (unsigned)below(chance(20) ? 16 : 6);
	m->nr_nodes =
		chance(30) ? 1 + (unsigned)below(KT_MIN(m->nr_cpus, 4)) : 1;
	m->slice_ns = chance(50) ? 3000000 : 1000 + below(50000);
	m->point_ns = chance(70) ? 5 : 1 + (unsigned)below(500);
	m->stall_one_in = chance(50) ? 20 + (unsigned)below(400) : 0;
	m->stall_ns = 1000 + below(200000);
}

static void plan_ranges(struct tracked_plan *plan, unsigned nr_nodes)
{
	plan->nr_ranges = chance(30) ? 1 + (unsigned)below(3) : 1;
	for (unsigned i = 0; i < plan->nr_ranges; i++) {
		plan->units[i] = below(chance(80) ? 60 : 300);
		plan->nodes[i] = chance(50) ? (int)below(nr_nodes) : KT_NO_NODE;
	}
}

static void plan_trouble(struct tracked_plan *plan)
{
	plan->fail_one_in = chance(30) ? 2 + (unsigned)below(30) : 0;
	plan->nest_one_in = chance(10) ? 2 + (unsigned)below(10) : 0;
	plan->fork_unit = UINT64_MAX;
	plan->timeout_ns = chance(8) ? 1 + below(300000) : 0;
	plan->cancel_ns = chance(40) ? 1 + below(300000) : 0;
	plan->undoes = chance(80);
	plan->iterated = chance(15);
	plan->reports = chance(10);
	plan->compensates = chance(10);
}

static void plan_job(struct tracked_plan *plan, const struct sim_machine *m)
{
	memset(plan, 0, sizeof(*plan));
	plan_ranges(plan, m->nr_nodes);
	plan_trouble(plan);
	plan->min_chunk = 1 + below(chance(70) ? 3 : 20);
	plan->align = 1ull << (chance(20) ? below(4) : 0);
	plan->target_ns = 1000 + below(200000);
	plan->unit_ns = 20 + below(chance(70) ? 3000 : 100000);
	/* Long enough for other counts of threads to be tried. */
	if (chance(5))
		plan->unit_ns += below(3000000);
	plan->expensive_every = chance(20) ? 2 + (unsigned)below(40) : 0;
	plan->max_threads = 1 + (unsigned)below(m->nr_cpus + 2);
	plan->capacity = chance(85) ? HELPERS_MAX : (unsigned)below(3);
	plan->fixed = chance(15);
	plan->detached = chance(20);
	plan->pace = &paces[below(sizeof(paces) / sizeof(*paces))];
}

/* ---- what happens beside ---- */

static void unplug(void *arg)
{
	unsigned cpu = (unsigned)(uintptr_t)arg;

	sim_trace("CPU %u goes", cpu);
	sim_set_online(cpu, false);
	sim_host_moved();
	world.stats->unplugged++;
}

static void plug_in(void *arg)
{
	sim_set_online((unsigned)(uintptr_t)arg, true);
	sim_host_moved();
}

static void change_permits(void *arg)
{
	sim_host_permits((unsigned)(uintptr_t)arg);
	world.stats->permit_changes++;
}

static void jump_clocks(void *arg)
{
	sim_host_jump((intptr_t)arg);
	world.stats->jumps++;
}

static void end_of_time(void *arg)
{
	sim_fail("no end is seen");
}

static uint64_t soon(void)
{
	return sim_now() + below(chance(50) ? 100000 : 2000000);
}

static void plan_events(const struct sim_machine *m)
{
	uintptr_t cpu = below(m->nr_cpus);

	sim_at(sim_now() + NO_END_NS, end_of_time, NULL);
	if (chance(20) && m->nr_cpus > 1 && cpu) {
		uint64_t ns = soon();

		sim_at(ns, unplug, (void *)cpu);
		if (chance(50))
			sim_at(ns + below(200000), plug_in, (void *)cpu);
	}
	for (unsigned i = 0; i < 3 && chance(25); i++)
		sim_at(soon(), change_permits, (void *)(uintptr_t)below(8));
	if (chance(10))
		sim_at(soon(), jump_clocks,
		       (void *)((intptr_t)below(20000000) - 10000000));
	if (chance(10))
		sim_host_clocks(1 + below(100000));
}

static struct hog {
	uint64_t from_ns, to_ns;
	unsigned weight;
} hogs[64];

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

		if (!chance(percent))
			continue;
		hog->weight = weights[below(4)];
		hog->from_ns = chance(50) ? 0 : SIM_START_NS + below(30000000);
		hog->to_ns =
			chance(70) ? SIM_NEVER : SIM_START_NS + below(60000000);
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
	tracked_init(t, &world.nested, outer->job.process, outer, world.stats);
	t->nest = run_nested;
	tracked_run(t);
	world.stats->nested++;
}

static void fork_process(struct tracked *t)
{
	struct sim_process *process = t->job.process;

	if (process->child)
		return;
	world.stats->forks++;
	for (struct tracked *job = t; job;
	     job = (struct tracked *)job->job.outer) {
		job->cancelled = true;
		job->root->helpers_in = 0;
		if (job->manager)
			sim_kill(job->manager);
	}
	for (unsigned i = 0; i < world.nr_callers; i++) {
		struct caller *caller = &world.callers[i];

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
	world.stats->detached++;
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
			     world.stats);
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
	struct caller *caller = &world.callers[index];
	char name[16] = "caller  ";

	caller->process = &world.processes[below(world.nr_processes)];
	caller->nr_jobs = 1 + (unsigned)below(chance(30) ? 3 : 1);
	for (unsigned i = 0; i < caller->nr_jobs; i++)
		plan_job(&caller->plans[i], &world.machine);
	if (world.forks)
		caller->plans[0].fork_unit = below(40);
	name[7] = (char)('1' + index);
	caller->thread = sim_spawn(name, caller_main, caller, SIM_WEIGHT_NORMAL,
				   &world.all, false);
}

static void start_processes(void)
{
	world.nr_processes = 1 + chance(20);
	for (unsigned i = 0; i < world.nr_processes; i++) {
		struct sim_process *process = &world.processes[i];

		process->helpers = world.helpers[i];
		process->never_percent = chance(25) ? (unsigned)below(100) : 0;
		process->elsewhere_one_in = 16;
		process->preferred_one_in = chance(30) ? 3 : 0;
		sim_process_init(process, (unsigned)below(HELPERS_MAX));
		if (chance(20))
			process->machine.limit = (uint32_t)below(4);
	}
}

/* What the parent of a fork holds, nobody follows. */
static void check_permits(void)
{
	unsigned parents = 0;

	for (unsigned i = 0; i < world.nr_processes; i++) {
		const struct sim_process *process = &world.processes[i];

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
	memset(&world, 0, sizeof(world));
	world.stats = stats;
	plan_machine(&world.machine);
	sim_reset(&world.machine, seed);
	sim_host_reset((unsigned)below(world.machine.nr_cpus + 2));
	memset(&world.all, 0xff, sizeof(world.all));
	world.forks = chance(5);
	start_processes();
	plan_events(&world.machine);
	plan_job(&world.nested, &world.machine);
	world.nested.detached = false;
	world.nested.units[0] %= 20;
	world.nested.nr_ranges = 1;
	start_hogs(hogs,
		   plan_hogs(hogs, world.machine.nr_cpus, chance(30) ? 50 : 0),
		   world.machine.nr_cpus);
	world.nr_callers = chance(30) ? 1 + (unsigned)below(CALLERS_MAX) : 1;
	for (unsigned i = 0; i < world.nr_callers; i++)
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
static void overload(struct timed *timed)
{
	timed->nr_hogs = plan_hogs(timed->hogs, 2 * world.machine.nr_cpus, 100);
	for (unsigned i = 0; i < timed->nr_hogs; i++) {
		timed->hogs[i].from_ns = 0;
		timed->hogs[i].to_ns = SIM_NEVER;
	}
}

static void plan_timed(struct timed *timed)
{
	struct sim_machine *m = &world.machine;
	struct tracked_plan *plan = &timed->plan;

	m->nr_cpus = 2 + (unsigned)below(7);
	m->nr_nodes = 1;
	m->slice_ns = 100000;
	m->point_ns = 5;
	memset(plan, 0, sizeof(*plan));
	plan->nr_ranges = 1;
	plan->nodes[0] = KT_NO_NODE;
	plan->units[0] = 1 + below(1000);
	plan->unit_ns = 1000 + below(chance(50) ? 20000 : 200000);
	plan->expensive_every = chance(20) ? 2 + (unsigned)below(40) : 0;
	plan->min_chunk = 1 + below(4);
	plan->align = 1;
	plan->target_ns = 1000000;
	plan->fork_unit = UINT64_MAX;
	plan->max_threads = m->nr_cpus;
	plan->capacity = HELPERS_MAX;
	plan->pace = &paces[0];
	timed->nr_helpers = m->nr_cpus - 1;
	timed->permits = KT_MAX(m->nr_cpus * 4 / 5, 1);
	world.processes[0].never_percent = chance(20) ? 50 : 0;
	timed->nr_hogs =
		plan_hogs(timed->hogs, 2 * m->nr_cpus, (unsigned)below(100));
	if (chance(12))
		overload(timed);
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
	return nr > world.machine.nr_cpus;
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
	struct sim_process *process = &world.processes[0];
	/* On one CPU: else luck decides beside whom it runs. */
	struct sim_cpus cpus = { { 1 } };
	const char *why;

	sim_reset(&world.machine, seed);
	sim_host_reset(timed->permits);
	sim_at(sim_now() + NO_END_NS, end_of_time, NULL);
	start_hogs(timed->hogs, timed->nr_hogs, world.machine.nr_cpus);
	process->helpers = world.helpers[0];
	sim_process_init(process, timed->nr_helpers);
	*job = tracked_alloc(sizeof(**job));
	tracked_init(*job, &timed->plan, process, NULL, world.stats);
	(*job)->job.begun = note_begin;
	sim_spawn("caller", timed_main, *job, SIM_WEIGHT_NORMAL, &cpus, false);
	why = sim_run();
	*ns = sim_now() - timed_begin_ns;
	return why;
}

/* Hog i is on CPU i % nr_cpus, and the caller on 0. */
static uint64_t turn_ns(const struct timed *timed)
{
	uint64_t weight = SIM_WEIGHT_NORMAL;

	for (unsigned i = 0; i < timed->nr_hogs; i += world.machine.nr_cpus)
		weight += timed->hogs[i].weight;
	return world.machine.slice_ns * weight / SIM_WEIGHT_NORMAL;
}

const char *schedule_time(uint64_t seed, struct schedule_time *time)
{
	struct schedule_stats stats = { 0 };
	struct timed timed;
	struct tracked *job;
	const char *why;

	plan_state = seed * 2654435761u + 1;
	tracked_free_all();
	memset(&world, 0, sizeof(world));
	world.stats = &stats;
	plan_timed(&timed);
	why = run_timed(&timed, seed, &job, &time->job_ns);
	if (why)
		return why;
	time->chunk_ns = job->longest_ns;
	time->work_ns = job->all_ns;
	time->turn_ns = turn_ns(&timed);
	time->threads = job->job.ctx.threads;
	time->lent = job->job.ctx.lent;
	time->cpus = world.machine.nr_cpus;
	time->hogs = timed.nr_hogs;
	time->overloaded = always_overloaded(&timed);
	sim_trace("---- and by one thread ----");
	timed.plan.max_threads = 1;
	timed.nr_helpers = 0;
	return run_timed(&timed, seed, &job, &time->plain_ns);
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
