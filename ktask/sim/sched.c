/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The scheduler of the simulated machine: threads, time and the run; see sched.h.
 * run_queues.c chooses the thread that each CPU runs.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/events.h"
#include "sim/fiber.h"
#include "sim/run_queues.h"
#include "sim/sched.h"

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

static uint64_t next_event_ns(void)
{
	uint64_t event_ns = events_next_ns();

	return event_ns < sim_state.tree[1] ? event_ns : sim_state.tree[1];
}

/* ---- threads ---- */

static void to_scheduler(struct sim_thread *thread)
{
	fiber_switch(thread->fiber, sim_state.scheduler);
}

static void end_thread(struct sim_thread *thread)
{
	queues_leave(thread);
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
	queues_enter(thread);
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
	queues_account(&sim_state.cpus[thread->cpu]);
	thread->left_ns = ns;
	queues_renew_event(thread->cpu);
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
	queues_enter(thread);
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
		queues_leave(thread);
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
	queues_enter(thread);
}

void sim_set_weight(struct sim_thread *thread, unsigned weight)
{
	if (thread->state == RUNNING)
		queues_account(&sim_state.cpus[thread->cpu]);
	thread->weight = weight;
	if (thread->state != READY && thread->state != RUNNING)
		return;
	/* The vruntime of its old weight must not keep it from a CPU. */
	if (thread->vruntime > sim_state.cpus[thread->cpu].vruntime)
		thread->vruntime = sim_state.cpus[thread->cpu].vruntime;
	if (thread->state == RUNNING)
		return;
	queues_leave(thread);
	thread->state = BLOCKED;
	queues_enter(thread);
}

void sim_set_cpus(struct sim_thread *thread, const struct sim_cpus *cpus)
{
	enum thread_state state = thread->state;

	thread->cpus = *cpus;
	if ((state != READY && state != RUNNING) ||
	    (state == RUNNING && queues_may_run(thread, thread->cpu)))
		return;
	queues_leave(thread);
	thread->state = BLOCKED;
	queues_enter(thread);
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
		queues_fill(index);
		return;
	}
	while (cpu->current || cpu->queue) {
		thread = cpu->current ? cpu->current : cpu->queue;
		queues_leave(thread);
		thread->state = BLOCKED;
		queues_enter(thread);
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

	queues_account(cpu);
	if (thread->left_ns) {
		/* Threads that waited may be on other CPUs by now. */
		if (cpu->queue && sim_state.now_ns >= cpu->slice_end_ns)
			queues_end_slice(index);
		else
			queues_renew_event(index);
		return;
	}
	/* Its next event is not known yet: those of other CPUs come first. */
	queues_set_event(index, SIM_NEVER);
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
			run_cpu(queues_first_cpu());
	}
	return sim_state.failed ? sim_state.why : NULL;
}
