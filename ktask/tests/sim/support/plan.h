/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What schedules are planned with: numbers drawn from the seed of a schedule, the world
 * that it runs in, and hogs, which are threads that use CPUs beside the jobs.
 */
#ifndef TESTS_SIM_PLAN_H
#define TESTS_SIM_PLAN_H

#include "tests/sim/support/schedule.h"
#include "tests/sim/support/tracked.h"

#define CALLERS_MAX 4
#define PROCESSES_MAX 2
#define HELPERS_MAX 16

struct caller {
	struct sim_thread *thread;
	struct sim_process *process;
	unsigned nr_jobs;
	struct tracked_plan plans[3];
};

struct world {
	struct sim_machine machine;
	struct sim_process processes[PROCESSES_MAX];
	struct sim_helper helpers[PROCESSES_MAX][HELPERS_MAX];
	unsigned nr_processes, nr_callers;
	struct caller callers[CALLERS_MAX];
	struct tracked_plan nested;
	struct schedule_stats *stats;
	struct sim_cpus all;
	bool forks, ramps;
};

extern struct world the_world;

struct hog {
	uint64_t from_ns, to_ns;
	unsigned weight;
};

/* The paces of the library, of the module, and one that does much in little time. */
#define NR_PACES 3
extern const struct kt_pace all_paces[NR_PACES];

/* begin_plan - draw from @seed from now on, for a world without anything */
void begin_plan(uint64_t seed, struct schedule_stats *stats);

/* draw_below - a number below @bound; draw_chance(): true @percent times of 100 */
uint64_t draw_below(uint64_t bound);
bool draw_chance(unsigned percent);

/* plan_hogs - each of @nr is there by a chance of @percent; return: how many are */
unsigned plan_hogs(struct hog *list, unsigned nr, unsigned percent);
void start_hogs(const struct hog *list, unsigned nr, unsigned nr_cpus);

/* fail_without_end - let the run fail if it does not end */
void fail_without_end(void);

#endif /* TESTS_SIM_PLAN_H */
