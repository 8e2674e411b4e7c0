/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One schedule: a machine, processes and jobs made from a seed, run on the
 * simulated host, and checked.
 */
#ifndef TESTS_SIM_SCHEDULE_H
#define TESTS_SIM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* What the schedules of a run had, so that a test cannot check nothing. */
struct schedule_stats {
	uint64_t jobs, failed, detached, nested, forks, orphans;
	uint64_t chunks, helper_chunks, undone, lent, points, compensating;
	uint64_t unplugged, permit_changes, jumps, cancelled, grown;
	uint64_t yielded, starved, late, reports;
	uint64_t ramps; /* that ended before their jobs */
	uint64_t of_children; /* jobs that a child of a fork began */
};

/*
 * schedule_check - jobs of all kinds among all that may happen to them
 *
 * Return: NULL, or what was wrong, valid until the next call.
 */
const char *schedule_check(uint64_t seed, struct schedule_stats *stats);

/*
 * schedule_each - @check seeds 1 to @nr
 *
 * Return: false: only the one that KTASK_TEST_SEED names was, with a trace.
 */
bool schedule_each(uint64_t nr, void (*check)(uint64_t seed));

struct schedule_time {
	uint64_t plain_ns; /* one thread does it */
	uint64_t job_ns; /* the job, with helpers */
	uint64_t work_ns; /* CPU time of all chunks, */
	uint64_t chunk_ns; /* and of the longest */
	/* Until a thread of the caller's weight has its turn: on the caller's
	 * CPU, and on the CPU where that takes longest. */
	uint64_t turn_ns, longest_turn_ns;
	unsigned threads, lent, cpus, hogs;
	bool overloaded; /* more threads than CPUs from beginning to end */
};

/* schedule_time - one job beside other load, and the same by one thread */
const char *schedule_time(uint64_t seed, struct schedule_time *time);

/* schedule_plain - beside the same load, one thread with @work_ns of work */
const char *schedule_plain(uint64_t seed, uint64_t work_ns, uint64_t *ns);

#endif /* TESTS_SIM_SCHEDULE_H */
