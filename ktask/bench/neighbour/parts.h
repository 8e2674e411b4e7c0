/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts of bench-neighbour, each one question; and what they are given.
 *
 * A part returns 0 or an errno and adds its rows to the tables (table.h).
 */
#ifndef BENCH_PARTS_H
#define BENCH_PARTS_H

#include <stddef.h>
#include <stdint.h>

struct settings {
	unsigned cpus; /* that this process may use */
	unsigned rounds;
	size_t size_bytes; /* of memory to populate, each time */
	uint64_t window_ns; /* in which throughput is counted */
	double work_seconds; /* of one thread in one computing job */
	const char *only_job; /* count: only names with it; NULL all */
	const char *only_load; /* full: the same */
};

int full_run(const struct settings *set); /* all CPUs are busy */
int half_run(const struct settings *set); /* half of them are */
int count_run(const struct settings *set); /* the right number of threads */
int react_run(const struct settings *set); /* the load comes and goes */
int permit_cost_run(const struct settings *set); /* what a permit costs */

#endif /* BENCH_PARTS_H */
