/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The simulated machine: CPUs, threads and time, all from one seed.
 *
 * A thread is a fiber.  Time passes only where a thread calls sim_spend() or
 * sim_point().  The scheduler goes from event to event and resumes the thread
 * whose event is first.  Threads on different CPUs therefore run in parallel, to
 * the nanosecond, and the same seed gives the same run.
 *
 * Threads share a CPU by weight, as with the kernel's fair scheduler: the thread
 * with the least CPU time for its weight runs for a slice.  A thread that wakes,
 * or whose slice is over, goes to the least loaded of the CPUs that it may use.
 * It preempts a thread of a much lower weight there.  An idle CPU takes a thread
 * that waits for another CPU.
 */
#ifndef KTASK_SIM_SCHED_H
#define KTASK_SIM_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_CPUS_MAX 1024
#define SIM_WORDS (SIM_CPUS_MAX / 64)
#define SIM_NEVER UINT64_MAX
#define SIM_START_NS 1000000000ull

/* Weights as the kernel's: nice 0, SCHED_IDLE, nice -20. */
#define SIM_WEIGHT_NORMAL 1024
#define SIM_WEIGHT_IDLE 3
#define SIM_WEIGHT_HIGH 88761

struct sim_cpus {
	uint64_t words[SIM_WORDS];
};

struct sim_machine {
	unsigned nr_cpus, nr_nodes; /* CPUs are dealt to nodes in blocks */
	uint64_t slice_ns; /* of a thread, while others wait for its CPU */
	unsigned point_ns; /* a point takes 1 to 2 * point_ns ns */
	unsigned stall_one_in; /* one point in so many stalls; 0: none does */
	uint64_t stall_ns; /* the longest stall */
};

struct sim_thread;

/* sim_reset - begin with an idle machine; all threads are gone */
void sim_reset(const struct sim_machine *machine, uint64_t seed);

/*
 * sim_run - run until every thread that is no daemon has ended
 *
 * Return: NULL, or the failure: the text given to sim_fail(), or that no thread
 * can ever run again.  After a failure only sim_reset() may be called.
 */
const char *sim_run(void);

/* sim_fail - by a simulated thread or an event: end sim_run() */
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sim_next_random - the next number of a sequence (splitmix64) */
static inline uint64_t sim_next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* sim_random - below @bound, from the seed of the schedule */
uint64_t sim_random(uint64_t bound);

/* sim_now - the time without skew or jumps, which no simulated clock shows */
uint64_t sim_now(void);

/* sim_at - call func(arg) at @ns, on no CPU */
void sim_at(uint64_t ns, void (*func)(void *arg), void *arg);

/*
 * sim_spawn - start a thread
 * @daemon: the run does not wait for it
 *
 * The machine owns it until sim_reset().
 */
struct sim_thread *sim_spawn(const char *name, void (*func)(void *arg),
			     void *arg, unsigned weight,
			     const struct sim_cpus *cpus, bool daemon);

/* sim_kill - stop a thread for good, wherever it is; not the calling one */
void sim_kill(struct sim_thread *thread);

/* sim_stop_daemon - let the run wait for the calling thread */
void sim_stop_daemon(void);

struct sim_thread *sim_self(void);
const char *sim_name(const struct sim_thread *thread);
unsigned sim_cpu(void);
uint64_t sim_cpu_time(const struct sim_thread *thread);
unsigned sim_weight(const struct sim_thread *thread);

/* sim_spend - use a CPU for @ns; by a simulated thread */
void sim_spend(uint64_t ns);

/* sim_point - let other threads run; also declared in ktask_port.h */
void sim_point(void);

/* sim_block - wait for sim_wake(), at most @ns.  A wake since the last
 * sim_block() counts.  Return: false after a timeout. */
bool sim_block(uint64_t ns);
void sim_wake(struct sim_thread *thread);

/* sim_set_weight, sim_set_cpus - change a thread; this takes effect at once */
void sim_set_weight(struct sim_thread *thread, unsigned weight);
void sim_set_cpus(struct sim_thread *thread, const struct sim_cpus *cpus);

/* sim_set_online - unplug a CPU, or plug it in; threads on it go elsewhere */
void sim_set_online(unsigned cpu, bool online);
bool sim_is_online(unsigned cpu);

unsigned sim_node_of(unsigned cpu);
const struct sim_machine *sim_machine(void);

/* sim_runnable - how many threads run or wait for a CPU */
unsigned sim_runnable(void);

/* sim_nr_points - how many points there were, for statistics */
uint64_t sim_nr_points(void);

static inline bool sim_in(const struct sim_cpus *cpus, unsigned cpu)
{
	return cpus->words[cpu / 64] >> (cpu % 64) & 1;
}

static inline void sim_put_in(struct sim_cpus *cpus, unsigned cpu)
{
	cpus->words[cpu / 64] |= 1ull << (cpu % 64);
}

static inline void sim_take_out(struct sim_cpus *cpus, unsigned cpu)
{
	cpus->words[cpu / 64] &= ~(1ull << (cpu % 64));
}

#endif /* KTASK_SIM_SCHED_H */
