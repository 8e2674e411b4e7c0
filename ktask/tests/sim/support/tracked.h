/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job whose every unit is watched: done once, undone once if the job fails,
 * and never else.
 */
#ifndef TESTS_SIM_TRACKED_H
#define TESTS_SIM_TRACKED_H

#include "sim/sim_host.h"

struct schedule_stats;

#define TRACKED_OTHERS 4

/* How a job is made; all by chance. */
struct tracked_plan {
	unsigned nr_ranges;
	uint64_t units[3];
	int nodes[3];
	uint64_t min_chunk, align, target_ns;
	uint64_t unit_ns; /* a unit takes, but one of expensive_every */
	unsigned expensive_every; /* takes ten times as long; 0 none */
	unsigned fail_one_in; /* chunks; 0 none */
	unsigned nest_one_in; /* chunks; 0 none */
	uint64_t fork_unit; /* who does it forks; UINT64_MAX nobody */
	uint64_t timeout_ns, cancel_ns; /* 0 none */
	unsigned max_threads, capacity;
	bool iterated, undoes, fixed, detached, reports, compensates;
	const struct kt_pace *pace;
};

struct tracked {
	struct sim_job job; /* first */
	const struct tracked_plan *plan;
	struct tracked *root; /* the outermost job around it */
	struct sim_thread *caller;
	unsigned nesting;
	uint8_t *units; /* enum unit */
	uint64_t first[3]; /* of each range, in units */
	unsigned helpers_in; /* of root: in chunks now */
	unsigned nr_failed, nr_undone;
	int first_error; /* that the job was seen with; 0 none */
	uint64_t taken,
		all_taken_ns; /* units; when the last one was, by a clock */
	uint64_t reported; /* units, when progress was reported last */
	uint64_t undone_to; /* the last unit that was undone, and 1 */
	uint64_t all_ns, longest_ns; /* CPU time of all chunks, and of one */
	uint64_t done;
	bool cancelled, over;
	bool ramped; /* a chunk was in a ramp */
	/* Who keeps compensating helpers, and these. */
	struct sim_thread *manager;
	bool manager_stops, manager_left;
	struct kt_helpers others;
	struct schedule_stats *stats;
	void (*nest)(struct tracked *outer);
	void (*fork)(struct tracked *job);
};

/* tracked_init - a job by @plan, of a process */
void tracked_init(struct tracked *t, const struct tracked_plan *plan,
		  struct sim_process *process, struct tracked *outer,
		  struct schedule_stats *stats);

/* tracked_run - by the calling simulated thread; checked when it is over */
int tracked_run(struct tracked *t);

/* tracked_check - by the thread that was told @error */
void tracked_check(struct tracked *t, int error);

/* tracked_alloc - zeroed memory until tracked_free_all(): a thread that is
 * killed frees nothing */
void *tracked_alloc(size_t size);
void tracked_free_all(void);

#endif /* TESTS_SIM_TRACKED_H */
