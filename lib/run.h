/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A run: one job in this process, from its control block to its result.
 *
 * ktask_run() and ktask_start() have static memory for the first of them; then it
 * is the caller's stack, and the heap.
 * Owned by the thread that began it until helpers are offered seats; from then
 * on a helper may touch its own seat, the core's job, and the budget.
 */
#ifndef KTASK_LIB_RUN_H
#define KTASK_LIB_RUN_H

#include <ktask/ktask.h>

#include "core/caps.h"
#include "core/job.h"
#include "core/tune.h"
#include "lib/limits.h"
#include "lib/pool.h"

/* Without an allocation a job has this many ranges and helpers. */
#define RUN_RANGES 8
#define RUN_SEATS 16

struct run_nodes;
struct spares;
struct topo;

struct run_seat {
	struct seat seat;
	struct kt_worker worker;
	struct run *run;
	struct kt_cap *node_cap; /* held, or NULL */
	unsigned index;
	unsigned range; /* that it was dealt */
	uint32_t tid; /* of its helper, while that works; 0 */
	uint32_t places; /* run->places when it was offered */
	bool starved; /* nobody took its offer on the choicest CPUs */
	bool counted; /* among the threads that did a chunk */
	int slot; /* that its helper has; -1 none yet */
	uint64_t seen_cpu_ns; /* of its helper, when it should have left */
	uint64_t seen_units; /* of the worker, at seen_ns */
	uint64_t seen_ns; /* 0: not looked at yet */
	uint64_t next_look_ns; /* for an idle CPU, by its helper */
	uint64_t cpu_ns;
};

struct run {
	struct kt_job job;
	const struct ktask_ctl *ctl;
	struct kt_range *ranges; /* own[] or allocated */
	struct run_seat *seats; /* own[] or allocated */
	unsigned nr_seats;
	unsigned nr_seated; /* seats [0, nr_seated) were used */

	struct run *parent; /* whose budget this one shares, or NULL */
	struct run *outer; /* whose chunk the caller is in, or NULL */
	uint32_t nested; /* threads of it that do other jobs just now */
	struct spares *spares; /* lib/spares.h; NULL: it does not block */
	uint64_t looked_ns, looked_cpu_ns; /* when that was looked at last */
	long looked_waits;
	struct kt_cap *budget; /* own_budget, or the outermost job's */
	struct kt_cap own_budget;
	uint32_t generation;
	uint32_t orphan; /* this is the child of a fork */
	uint32_t alone; /* started; nobody waits for it yet, nobody looks */

	struct kt_worker caller;
	uint64_t start_ns, work_end_ns, end_ns;
	uint64_t caller_cpu_ns;
	bool measure_cpu;

	struct kt_tune tune;
	unsigned wanted; /* threads that tune wants */
	int demand; /* its entry in the machine's table; lib/slots.h */
	uint32_t changes; /* of all demands, when it looked last */
	uint64_t share_ns; /* then its share changes */
	uint64_t next_tick_ns, next_progress_ns;
	uint64_t next_look_ns, soon_look_ns; /* without and with changes */
	bool leaving; /* a helper shall leave and has not yet */
	uint64_t seat_ns; /* about now, when seats are offered */
	uint64_t units_total;

	/* Of helpers that have left. */
	uint64_t chunks, units, helper_cpu_ns;
	unsigned threads, lent;

	const struct topo *topo;
	struct kt_cpus affinity; /* of the caller, when it looked last */
	unsigned nr_cpus; /* threads that these are enough for */
	uint32_t places; /* counts how often they changed */
	struct kt_cpus cpus; /* where helpers of any node may run */
	struct kt_place_room room; /* on these */
	struct run_nodes *nodes; /* lib/places.h; NULL: one node */
	struct kt_range own_ranges[RUN_RANGES];
	struct run_seat own_seats[RUN_SEATS];
};

/* The job that the calling thread is in, if any; a stack through parent. */
struct run_context {
	struct run *run;
	struct kt_worker *worker;
};

struct run_context *run_context(void);

/* run_check - 0, or -EINVAL for what ktask.h calls invalid */
int run_check(const struct ktask_ctl *ctl, const struct ktask_node *nodes,
	      size_t nr_nodes);

/*
 * run_init - fill in a run from its ranges
 *
 * Return: 0; -EINVAL; -ENOMEM when @nr_nodes ranges need memory that there is
 * not.  Release with run_release().
 */
int run_init(struct run *run, const struct ktask_node *nodes, size_t nr_nodes,
	     const struct ktask_ctl *ctl);

/*
 * run_begin - enter the pool and offer the first seats
 * @started: the caller goes away; somebody may wait later
 */
void run_begin(struct run *run, bool started);

/* run_work - the calling thread works on it until nothing is left */
void run_work(struct run *run);

/* run_check_fork - is this the child of a fork since the run began? */
void run_check_fork(struct run *run);

/* run_nr_workers, run_worker_at - 0 the caller, then the seats, then spares */
unsigned run_nr_workers(const struct run *run);
const struct kt_worker *run_worker_at(void *run, unsigned index);

/* run_end - collect helpers, undo, fill the result; returns the job's code */
int run_end(struct run *run);

void run_release(struct run *run);

/* run_units - done so far; any thread */
uint64_t run_units(struct run *run);

/* run_seat_threads - make @threads work on the job, as far as can be had */
void run_seat_threads(struct run *run, unsigned threads);

/* run_helper_stuck - is a helper in a chunk of which no end is seen? */
bool run_helper_stuck(struct run *run, uint64_t now_ns);

/* run_withdraw_offers - so that no more helpers begin */
void run_withdraw_offers(struct run *run);

/* run_wait_for_helpers - one at a time, lending the caller's priority */
void run_wait_for_helpers(struct run *run);

/* run_cpu_ns - CPU time of the calling thread */
uint64_t run_cpu_ns(void);

/* run_progress - fill a snapshot; any thread */
void run_progress(struct run *run, struct ktask_progress *progress);

/* run_begin_known - begin with what is known of jobs of this name, if it is */
void run_begin_known(struct run *run, unsigned max);

/* run_remember - what later jobs and `ktask stat` shall know of this one */
void run_remember(struct run *run, int error);

/* run_settled - nothing left to claim and no helper in a chunk */
bool run_settled(struct run *run);

/* result_fill - from a run that has ended with @error */
void result_fill(struct ktask_result *result, struct run *run, int error);

#endif /* KTASK_LIB_RUN_H */
