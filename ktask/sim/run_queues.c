/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See run_queues.h.
 *
 * Behaves badly as a model of caches and memory: CPUs are equally fast and do not slow
 * one another.
 */
#include <string.h>

#include "sim/run_queues.h"

/* A thread preempts another of less than 1 / CLASS_PART of its weight. */
#define CLASS_PART 8

struct sim_state sim_state;

/* ---- the earliest event of the CPUs ---- */

void queues_set_event(unsigned cpu, uint64_t ns)
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

void queues_renew_event(unsigned index)
{
	queues_set_event(index, cpu_event_ns(&sim_state.cpus[index]));
}

unsigned queues_first_cpu(void)
{
	unsigned i = 1;

	while (i < sim_state.tree_size)
		i = sim_state.tree[2 * i] == sim_state.tree[i] ? 2 * i
							       : 2 * i + 1;
	return i - sim_state.tree_size;
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
void queues_account(struct cpu *cpu)
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
	queues_renew_event(index);
}

bool queues_may_run(const struct sim_thread *thread, unsigned cpu)
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

		if (!queues_may_run(thread, cpu))
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

void queues_enter(struct sim_thread *thread)
{
	int index = choose_cpu(thread);
	struct cpu *cpu;

	/* A mask without a CPU is widened, as the kernel does it. */
	if (index < 0) {
		memset(&thread->cpus, 0xff, sizeof(thread->cpus));
		index = choose_cpu(thread);
	}
	cpu = &sim_state.cpus[index];
	queues_account(cpu);
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
		queues_renew_event((unsigned)index);
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
			if (queues_may_run(t, index) &&
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
void queues_fill(unsigned index)
{
	struct cpu *cpu = &sim_state.cpus[index];
	struct sim_thread *next = least_served(cpu);

	cpu->current = NULL;
	if (!next && cpu->online)
		next = steal_thread(index);
	if (!next) {
		queues_set_event(index, SIM_NEVER);
		return;
	}
	dequeue_thread(next);
	set_current(index, next);
}

/* The slice of the thread on CPU @index is over. */
void queues_end_slice(unsigned index)
{
	struct cpu *cpu = &sim_state.cpus[index];
	struct sim_thread *thread = cpu->current;
	struct sim_thread *next = least_served(cpu);
	int better;

	cpu->slice_end_ns = sim_state.now_ns + sim_state.machine.slice_ns;
	if (next->vruntime >= thread->vruntime) {
		queues_renew_event(index);
		return;
	}
	dequeue_thread(next);
	set_current(index, next);
	thread->state = BLOCKED;
	better = choose_cpu(thread);
	if (better >= 0 && (unsigned)better != index) {
		queues_enter(thread);
	} else {
		enqueue_thread(index, thread);
		queues_renew_event(index);
	}
}

void queues_leave(struct sim_thread *thread)
{
	unsigned index = thread->cpu;

	if (thread->state == READY) {
		dequeue_thread(thread);
		queues_renew_event(index);
	} else if (thread->state == RUNNING) {
		queues_account(&sim_state.cpus[index]);
		queues_fill(index);
	}
}
