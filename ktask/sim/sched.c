/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* length: one scheduler, whose functions share one state */
/*
 * The scheduler of the simulated machine: see sched.h.
 *
 * Behaves badly as a model of caches and memory: CPUs are equally fast and do
 * not slow one another.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/events.h"
#include "sim/fiber.h"
#include "sim/sched.h"

/* A thread preempts another of less than 1 / CLASS_PART of its weight. */
#define CLASS_PART 8
#define THREADS_MAX 4096

enum thread_state { DEAD, READY, RUNNING, BLOCKED };

struct sim_thread {
	enum thread_state state;
	char name[24];
	struct fiber *fiber;
	void (*func)(void *arg);
	void *arg;
	unsigned weight;
	struct sim_cpus cpus;
	bool daemon;
	bool woken; /* since it blocked last */
	bool timed_out;
	unsigned cpu; /* runs on it, or waits for it, or last did */
	uint64_t vruntime;
	uint64_t left_ns; /* of sim_spend(), still to run */
	uint64_t since_ns; /* RUNNING: its CPU time is accounted up to here */
	uint64_t cpu_ns;
	uint32_t timer; /* the current timeout; events of others are stale */
	struct sim_thread *next; /* READY: of its CPU's queue */
};

struct cpu {
	bool online;
	struct sim_thread *current;
	struct sim_thread *queue;
	unsigned nr_queued;
	uint64_t slice_end_ns;
	uint64_t vruntime; /* the least that threads on it had; never less */
};

static struct {
	struct sim_machine machine;
	uint64_t now_ns;
	uint64_t random;
	uint64_t nr_points;
	struct cpu cpus[SIM_CPUS_MAX];
	/* The earliest event of any CPU: leaves are CPUs, a node has the least
	 * of both below it. */
	uint64_t tree[2 * SIM_CPUS_MAX];
	unsigned tree_size;
	struct sim_thread *threads[THREADS_MAX];
	unsigned nr_threads, nr_alive; /* alive: no daemons */
	unsigned nr_ready;
	struct sim_thread *self; /* whose fiber runs */
	struct fiber *scheduler;
	bool failed;
	char why[512];
} sim_state;

uint64_t sim_random(uint64_t bound)
{
	return bound ? sim_next_random(&sim_state.random) % bound : 0;
}

/* ---- events ---- */

void sim_at(uint64_t ns, void (*func)(void *arg), void *arg)
{
	struct event event = { .ns = ns, .func = func, .arg = arg };

	events_push(&event);
}

/* ---- the earliest event of the CPUs ---- */

static void set_cpu_event(unsigned cpu, uint64_t ns)
{
	unsigned i = sim_state.tree_size + cpu;

	sim_state.tree[i] = ns;
	for (i /= 2; i; i /= 2) {
		uint64_t left = sim_state.tree[2 * i],
			 right = sim_state.tree[2 * i + 1];

		sim_state.tree[i] = left < right ? left : right;
	}
}

static uint64_t cpu_event_ns(const struct cpu *cpu)
{
	const struct sim_thread *current = cpu->current;
	uint64_t ns;

	if (!current)
		return SIM_NEVER;
	ns = current->since_ns + current->left_ns;
	if (cpu->queue && cpu->slice_end_ns < ns)
		ns = cpu->slice_end_ns;
	return ns > sim_state.now_ns ? ns : sim_state.now_ns;
}

static void renew_event(unsigned index)
{
	set_cpu_event(index, cpu_event_ns(&sim_state.cpus[index]));
}

/* The CPU whose event is first. */
static unsigned first_cpu(void)
{
	unsigned i = 1;

	while (i < sim_state.tree_size)
		i = sim_state.tree[2 * i] == sim_state.tree[i] ? 2 * i
							       : 2 * i + 1;
	return i - sim_state.tree_size;
}

static uint64_t next_event_ns(void)
{
	uint64_t event_ns = events_next_ns();

	return event_ns < sim_state.tree[1] ? event_ns : sim_state.tree[1];
}

/* ---- who runs where ---- */

static void raise_vruntime(struct cpu *cpu)
{
	uint64_t least = cpu->current->vruntime;

	for (const struct sim_thread *t = cpu->queue; t; t = t->next)
		if (t->vruntime < least)
			least = t->vruntime;
	if (least > cpu->vruntime)
		cpu->vruntime = least;
}

/* Account the CPU time of the thread on @cpu up to now. */
static void account_current(struct cpu *cpu)
{
	struct sim_thread *thread = cpu->current;
	uint64_t ns;

	if (!thread)
		return;
	ns = sim_state.now_ns - thread->since_ns;
	thread->since_ns = sim_state.now_ns;
	thread->left_ns -= ns < thread->left_ns ? ns : thread->left_ns;
	thread->cpu_ns += ns;
	thread->vruntime += ns * SIM_WEIGHT_NORMAL / thread->weight;
	raise_vruntime(cpu);
}

static void enqueue_thread(unsigned index, struct sim_thread *thread)
{
	struct cpu *cpu = &sim_state.cpus[index];

	thread->state = READY;
	thread->cpu = index;
	thread->next = cpu->queue;
	cpu->queue = thread;
	cpu->nr_queued++;
	sim_state.nr_ready++;
}

static void dequeue_thread(struct sim_thread *thread)
{
	struct cpu *cpu = &sim_state.cpus[thread->cpu];
	struct sim_thread **link = &cpu->queue;

	while (*link != thread)
		link = &(*link)->next;
	*link = thread->next;
	cpu->nr_queued--;
	sim_state.nr_ready--;
}

static void set_current(unsigned index, struct sim_thread *thread)
{
	struct cpu *cpu = &sim_state.cpus[index];

	thread->state = RUNNING;
	thread->cpu = index;
	thread->since_ns = sim_state.now_ns;
	cpu->current = thread;
	cpu->slice_end_ns = sim_state.now_ns + sim_state.machine.slice_ns;
	renew_event(index);
}

static bool may_run(const struct sim_thread *thread, unsigned cpu)
{
	return sim_state.cpus[cpu].online && sim_in(&thread->cpus, cpu);
}

static bool outranks_thread(const struct sim_thread *a,
			    const struct sim_thread *b)
{
	return a->weight / CLASS_PART > b->weight;
}

static unsigned load_of(const struct cpu *cpu)
{
	unsigned load = cpu->current ? cpu->current->weight : 0;

	for (const struct sim_thread *t = cpu->queue; t; t = t->next)
		load += t->weight;
	return load;
}

/* Return: the CPU with the least load, of equal ones the one that it had last;
 * -1 if it may run on none. */
static int choose_cpu(const struct sim_thread *thread)
{
	unsigned nr = sim_state.machine.nr_cpus, start = thread->cpu;
	unsigned best = UINT32_MAX;
	int found = -1;

	for (unsigned i = 0; i < nr && best; i++) {
		unsigned cpu = (start + i) % nr;
		unsigned load;

		if (!may_run(thread, cpu))
			continue;
		load = load_of(&sim_state.cpus[cpu]);
		if (load >= best)
			continue;
		best = load;
		found = (int)cpu;
	}
	return found;
}

/*
 * A thread keeps its lead or lag when it moves to another CPU.  A thread that was blocked
 * has used no CPU meanwhile; its lag is limited to a slice.
 */
static void move_vruntime(struct sim_thread *thread, const struct cpu *cpu)
{
	const struct cpu *old = &sim_state.cpus[thread->cpu];
	uint64_t least = cpu->vruntime > sim_state.machine.slice_ns
				 ? cpu->vruntime - sim_state.machine.slice_ns
				 : 0;

	if (old != cpu)
		thread->vruntime += cpu->vruntime - old->vruntime;
	/* The difference may be below 0. */
	if (thread->vruntime < least || thread->vruntime > 1ull << 62)
		thread->vruntime = least;
}

static void place_thread(struct sim_thread *thread)
{
	int index = choose_cpu(thread);
	struct cpu *cpu;

	/* A mask without a CPU is widened, as the kernel does it. */
	if (index < 0) {
		memset(&thread->cpus, 0xff, sizeof(thread->cpus));
		index = choose_cpu(thread);
	}
	cpu = &sim_state.cpus[index];
	account_current(cpu);
	move_vruntime(thread, cpu);
	if (!cpu->current) {
		set_current((unsigned)index, thread);
		return;
	}
	if (!outranks_thread(thread, cpu->current)) {
		enqueue_thread((unsigned)index, thread);
		if (cpu->nr_queued == 1)
			cpu->slice_end_ns =
				sim_state.now_ns + sim_state.machine.slice_ns;
		renew_event((unsigned)index);
		return;
	}
	enqueue_thread((unsigned)index, cpu->current);
	set_current((unsigned)index, thread);
}

/* A thread that waits elsewhere and may run on @index. */
static struct sim_thread *steal_thread(unsigned index)
{
	struct sim_thread *best = NULL;

	for (unsigned i = 1;
	     sim_state.nr_ready && i < sim_state.machine.nr_cpus; i++) {
		const struct cpu *cpu =
			&sim_state
				 .cpus[(index + i) % sim_state.machine.nr_cpus];

		for (struct sim_thread *t = cpu->queue; t; t = t->next)
			if (may_run(t, index) &&
			    (!best || t->weight > best->weight))
				best = t;
	}
	return best;
}

static struct sim_thread *least_served(const struct cpu *cpu)
{
	struct sim_thread *best = cpu->queue;

	for (struct sim_thread *t = best; t; t = t->next)
		if (t->vruntime < best->vruntime)
			best = t;
	return best;
}

/* No thread runs on CPU @index: let the next one run. */
static void fill_cpu(unsigned index)
{
	struct cpu *cpu = &sim_state.cpus[index];
	struct sim_thread *next = least_served(cpu);

	cpu->current = NULL;
	if (!next && cpu->online)
		next = steal_thread(index);
	if (!next) {
		set_cpu_event(index, SIM_NEVER);
		return;
	}
	dequeue_thread(next);
	set_current(index, next);
}

/* The slice of the thread on CPU @index is over. */
static void end_slice(unsigned index)
{
	struct cpu *cpu = &sim_state.cpus[index];
	struct sim_thread *thread = cpu->current;
	struct sim_thread *next = least_served(cpu);
	int better;

	cpu->slice_end_ns = sim_state.now_ns + sim_state.machine.slice_ns;
	if (next->vruntime >= thread->vruntime) {
		renew_event(index);
		return;
	}
	dequeue_thread(next);
	set_current(index, next);
	thread->state = BLOCKED;
	better = choose_cpu(thread);
	if (better >= 0 && (unsigned)better != index) {
		place_thread(thread);
	} else {
		enqueue_thread(index, thread);
		renew_event(index);
	}
}

/* ---- threads ---- */

static void leave_cpu(struct sim_thread *thread)
{
	unsigned index = thread->cpu;

	if (thread->state == READY) {
		dequeue_thread(thread);
		renew_event(index);
	} else if (thread->state == RUNNING) {
		account_current(&sim_state.cpus[index]);
		fill_cpu(index);
	}
}

static void to_scheduler(struct sim_thread *thread)
{
	fiber_switch(thread->fiber, sim_state.scheduler);
}

static void end_thread(struct sim_thread *thread)
{
	leave_cpu(thread);
	thread->state = DEAD;
	sim_state.nr_alive -= !thread->daemon;
}

static void thread_main(void *arg)
{
	struct sim_thread *thread = arg;

	thread->func(thread->arg);
	end_thread(thread);
	to_scheduler(thread);
	abort();
}

struct sim_thread *sim_spawn(const char *name, void (*func)(void *arg),
			     void *arg, unsigned weight,
			     const struct sim_cpus *cpus, bool daemon)
{
	struct sim_thread *thread;

	if (sim_state.nr_threads == THREADS_MAX)
		abort();
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		abort();
	sim_state.threads[sim_state.nr_threads++] = thread;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	thread->fiber = fiber_make(thread_main, thread);
	thread->func = func;
	thread->arg = arg;
	thread->weight = weight;
	thread->cpus = *cpus;
	thread->daemon = daemon;
	thread->state = BLOCKED;
	sim_state.nr_alive += !daemon;
	thread->cpu = (unsigned)sim_random(sim_state.machine.nr_cpus);
	place_thread(thread);
	return thread;
}

void sim_kill(struct sim_thread *thread)
{
	if (thread->state != DEAD)
		end_thread(thread);
}

void sim_stop_daemon(void)
{
	sim_state.nr_alive += sim_state.self->daemon;
	sim_state.self->daemon = false;
}

struct sim_thread *sim_self(void)
{
	return sim_state.self;
}

const char *sim_name(const struct sim_thread *thread)
{
	return thread ? thread->name : "machine";
}

unsigned sim_cpu(void)
{
	return sim_state.self ? sim_state.self->cpu : 0;
}

uint64_t sim_cpu_time(const struct sim_thread *thread)
{
	uint64_t ns = thread->cpu_ns;

	if (thread->state == RUNNING)
		ns += sim_state.now_ns - thread->since_ns;
	return ns;
}

unsigned sim_weight(const struct sim_thread *thread)
{
	return thread->weight;
}

uint64_t sim_now(void)
{
	return sim_state.now_ns;
}

/* Without a switch to the scheduler if no event comes before the end. */
void sim_spend(uint64_t ns)
{
	struct sim_thread *thread = sim_state.self;

	if (!thread || !ns)
		return;
	if (sim_state.now_ns + ns < next_event_ns()) {
		const struct cpu *cpu = &sim_state.cpus[thread->cpu];

		if (!cpu->queue || sim_state.now_ns + ns < cpu->slice_end_ns) {
			sim_state.now_ns += ns;
			return;
		}
	}
	account_current(&sim_state.cpus[thread->cpu]);
	thread->left_ns = ns;
	renew_event(thread->cpu);
	to_scheduler(thread);
}

void sim_point(void)
{
	const struct sim_machine *m = &sim_state.machine;
	uint64_t random;

	if (!sim_state.self)
		return;
	sim_state.nr_points++;
	random = sim_next_random(&sim_state.random);
	if (m->stall_one_in && (random >> 32) % m->stall_one_in == 0)
		sim_spend(1 + random % m->stall_ns);
	else
		sim_spend(1 + (uint32_t)random % (2 * m->point_ns));
}

static void time_out(struct sim_thread *thread)
{
	if (thread->state != BLOCKED)
		return;
	thread->timed_out = true;
	place_thread(thread);
}

bool sim_block(uint64_t ns)
{
	struct sim_thread *thread = sim_state.self;
	struct event event = { 0 };

	if (!thread->woken) {
		thread->timed_out = false;
		thread->timer++;
		if (ns < SIM_NEVER - sim_state.now_ns) {
			event.ns = sim_state.now_ns + ns;
			event.arg = thread;
			event.timer = thread->timer;
			events_push(&event);
		}
		leave_cpu(thread);
		thread->state = BLOCKED;
		thread->left_ns = 0;
		to_scheduler(thread);
		if (thread->timed_out)
			return false;
	}
	thread->woken = false;
	return true;
}

void sim_wake(struct sim_thread *thread)
{
	if (thread->state == DEAD)
		return;
	thread->woken = true;
	if (thread->state != BLOCKED)
		return;
	thread->timer++;
	place_thread(thread);
}

void sim_set_weight(struct sim_thread *thread, unsigned weight)
{
	if (thread->state == RUNNING)
		account_current(&sim_state.cpus[thread->cpu]);
	thread->weight = weight;
	if (thread->state != READY && thread->state != RUNNING)
		return;
	/* The vruntime of its old weight must not keep it from a CPU. */
	if (thread->vruntime > sim_state.cpus[thread->cpu].vruntime)
		thread->vruntime = sim_state.cpus[thread->cpu].vruntime;
	if (thread->state == RUNNING)
		return;
	leave_cpu(thread);
	thread->state = BLOCKED;
	place_thread(thread);
}

void sim_set_cpus(struct sim_thread *thread, const struct sim_cpus *cpus)
{
	enum thread_state state = thread->state;

	thread->cpus = *cpus;
	if ((state != READY && state != RUNNING) ||
	    (state == RUNNING && may_run(thread, thread->cpu)))
		return;
	leave_cpu(thread);
	thread->state = BLOCKED;
	place_thread(thread);
	/* A thread that moved itself goes on when it gets the other CPU. */
	if (thread == sim_state.self)
		to_scheduler(thread);
}

void sim_set_online(unsigned index, bool online)
{
	struct cpu *cpu = &sim_state.cpus[index];
	struct sim_thread *thread;

	if (cpu->online == online)
		return;
	cpu->online = online;
	if (online) {
		fill_cpu(index);
		return;
	}
	while (cpu->current || cpu->queue) {
		thread = cpu->current ? cpu->current : cpu->queue;
		leave_cpu(thread);
		thread->state = BLOCKED;
		place_thread(thread);
	}
}

bool sim_is_online(unsigned cpu)
{
	return sim_state.cpus[cpu].online;
}

unsigned sim_node_of(unsigned cpu)
{
	unsigned each =
		(sim_state.machine.nr_cpus + sim_state.machine.nr_nodes - 1) /
		sim_state.machine.nr_nodes;

	return cpu / each;
}

const struct sim_machine *sim_machine(void)
{
	return &sim_state.machine;
}

unsigned sim_runnable(void)
{
	unsigned nr = sim_state.nr_ready;

	for (unsigned i = 0; i < sim_state.machine.nr_cpus; i++)
		nr += sim_state.cpus[i].current != NULL;
	return nr;
}

uint64_t sim_nr_points(void)
{
	return sim_state.nr_points;
}

/* ---- the run ---- */

void sim_reset(const struct sim_machine *machine, uint64_t seed)
{
	for (unsigned i = 0; i < sim_state.nr_threads; i++) {
		fiber_put(sim_state.threads[i]->fiber);
		free(sim_state.threads[i]);
	}
	sim_state.machine = *machine;
	sim_state.now_ns = SIM_START_NS;
	sim_state.random = seed;
	sim_state.nr_threads = 0;
	sim_state.nr_alive = 0;
	sim_state.nr_ready = 0;
	events_reset();
	sim_state.nr_points = 0;
	sim_state.self = NULL;
	sim_state.failed = false;
	sim_state.scheduler = fiber_main();
	sim_state.tree_size = 1;
	while (sim_state.tree_size < machine->nr_cpus)
		sim_state.tree_size *= 2;
	for (unsigned i = 0; i < 2 * sim_state.tree_size; i++)
		sim_state.tree[i] = SIM_NEVER;
	memset(sim_state.cpus, 0, machine->nr_cpus * sizeof(sim_state.cpus[0]));
	for (unsigned i = 0; i < machine->nr_cpus; i++)
		sim_state.cpus[i].online = true;
}

void sim_fail(const char *format, ...)
{
	va_list args;

	if (!sim_state.failed) {
		sim_state.failed = true;
		va_start(args, format);
		vsnprintf(sim_state.why, sizeof(sim_state.why), format, args);
		va_end(args);
	}
	/* A simulated thread does not return from here. */
	if (sim_state.self)
		fiber_switch(sim_state.self->fiber, sim_state.scheduler);
}

static void run_event(void)
{
	struct event event = events_pop();
	struct sim_thread *thread = event.arg;

	if (event.func)
		event.func(event.arg);
	else if (thread->timer == event.timer)
		time_out(thread);
}

static void run_cpu(unsigned index)
{
	struct cpu *cpu = &sim_state.cpus[index];
	struct sim_thread *thread = cpu->current;

	account_current(cpu);
	if (thread->left_ns) {
		/* Threads that waited may be on other CPUs by now. */
		if (cpu->queue && sim_state.now_ns >= cpu->slice_end_ns)
			end_slice(index);
		else
			renew_event(index);
		return;
	}
	/* Its next event is not known yet: those of other CPUs come first. */
	set_cpu_event(index, SIM_NEVER);
	sim_state.self = thread;
	fiber_switch(sim_state.scheduler, thread->fiber);
	sim_state.self = NULL;
}

const char *sim_run(void)
{
	while (sim_state.nr_alive && !sim_state.failed) {
		uint64_t ns = next_event_ns();

		if (ns == SIM_NEVER) {
			sim_fail("nobody can run any more, and %u threads "
				 "have not ended",
				 sim_state.nr_alive);
			break;
		}
		sim_state.now_ns =
			ns > sim_state.now_ns ? ns : sim_state.now_ns;
		if (events_next_ns() <= sim_state.now_ns)
			run_event();
		else
			run_cpu(first_cpu());
	}
	return sim_state.failed ? sim_state.why : NULL;
}
