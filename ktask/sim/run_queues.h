/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Run queues: which thread runs on each CPU of the simulated machine, which wait for it,
 * and when its next event is.  Also the state that this and sched.c share.
 *
 * A CPU's event is the end of what its thread has to run, or of its slice.
 */
#ifndef KTASK_SIM_RUN_QUEUES_H
#define KTASK_SIM_RUN_QUEUES_H

#include "sim/sched.h"

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

struct sim_state {
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
};

extern struct sim_state sim_state;

/* queues_enter - let @thread, which is in no queue, run or wait on the best CPU for it */
void queues_enter(struct sim_thread *thread);

/* queues_leave - take @thread from its CPU, which gets another one, or from a queue */
void queues_leave(struct sim_thread *thread);

/* queues_fill - let the next thread run on CPU @index, on which none does */
void queues_fill(unsigned index);

/* queues_end_slice - let another thread of CPU @index run if one has had less */
void queues_end_slice(unsigned index);

/* queues_account - add to the CPU time of the thread on @cpu what it ran until now */
void queues_account(struct cpu *cpu);

/* queues_may_run - is @cpu online, and one that @thread may use? */
bool queues_may_run(const struct sim_thread *thread, unsigned cpu);

/* queues_set_event - the next event of @cpu is at @ns; queues_renew_event() finds out
 * when it is */
void queues_set_event(unsigned cpu, uint64_t ns);
void queues_renew_event(unsigned index);

/* queues_first_cpu - the CPU whose event is first */
unsigned queues_first_cpu(void);

#endif /* KTASK_SIM_RUN_QUEUES_H */
