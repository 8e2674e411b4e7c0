/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The simulated host of engine/: processes with pools of helpers, permits that
 * all of them share, jobs.
 *
 * The policy is a small version of the library's.  Shares are max-min fair, by
 * core/share.h.  Helpers have the lowest weight until the caller lends its own.
 * A helper that gets no CPU is an overload, and so are more threads than CPUs when
 * a job begins: for a while all jobs get only as many threads as CPUs are idle.
 *
 * The host checks the rules of engine/host.h as far as it can, and ends the run by
 * sim_fail() where one is broken.
 */
#ifndef KTASK_SIM_HOST_H
#define KTASK_SIM_HOST_H

#include "engine/context.h"
#include "sim/sched.h"

#define SIM_NODES_MAX 16
#define SIM_RANGES_MAX 16
#define SIM_JOBS_MAX 1024

struct sim_helper {
	struct sim_process *process;
	struct sim_thread *thread;
	struct kt_item *item; /* from submission until it left */
	uint32_t ticket; /* counts submissions */
	enum kt_item_state state;
	bool declined; /* found no permit, and will try again */
	bool never; /* never gets a CPU */
	struct sim_thread *waiter;
};

struct sim_process {
	struct sim_helper *helpers;
	unsigned nr_helpers;
	struct kt_cap machine;
	unsigned shared; /* permits of all processes that it holds, */
	unsigned parents; /* and that its parent held when it was forked */
	struct kt_cap nodes[SIM_NODES_MAX];
	unsigned never_percent; /* of helpers */
	unsigned elsewhere_one_in; /* helpers bound to another node; 0 none */
	unsigned preferred_one_in; /* helpers bound to one CPU; 0 none */
	bool child; /* of a fork: its parent owns what was held */
	struct sim_cpus cpus; /* that helpers may use */
};

/* What the engine was told, and what it did: sim/sim_rules.h. */
struct sim_rules {
	unsigned nr_answers; /* of allowed_threads() */
	unsigned answer; /* threads that are allowed, */
	uint32_t changes; /* unless the shared registry has changed since, */
	uint64_t answer_until_ns; /* or it is later */
	bool adjusting; /* the engine acts on the answer just now */
	bool soon; /* helpers were lacking or leaving at the last refresh */
	uint64_t refreshed_ns, until_ns; /* answer_until_ns of that refresh */
	uint64_t tick_ns, reported_ns;
	bool draining; /* helpers are waited for, and none shall begin */
	bool ended; /* the client was told */
	uint32_t others_generation; /* of compensating helpers' CPUs */
	unsigned nr_others; /* how often their number was set */
	int caller_node; /* KT_NO_NODE: the caller chooses when it works */
	unsigned served_range, turn; /* of which a node was asked for last */
};

struct sim_job {
	struct kt_context ctx; /* first */
	struct sim_process *process;
	struct sim_job *outer; /* whose chunk the caller was in */
	struct kt_range ranges[SIM_RANGES_MAX];
	struct kt_item *items;
	unsigned max_items; /* 0: memory for none */
	int entry; /* in the shared registry; -1 */
	bool alone; /* it began in an overload, */
	bool grown; /* and had helpers later */
	unsigned max_threads; /* once that is over */
	uint32_t adjusted; /* threads at the end of the last refresh */
	uint64_t deadline_ns; /* 0 none */
	unsigned nr_yielded, nr_starved; /* helpers, for statistics */
	bool caller_worked; /* its caller did a chunk */
	struct sim_rules rules;
	/* By the caller, at these stages; or NULL. */
	void (*begun)(struct sim_job *job);
	void (*draining)(struct sim_job *job);
};

/* sim_host_reset - begin without a process; all helpers share @permits */
void sim_host_reset(unsigned permits);

/* sim_host_permits - change the number of permits */
void sim_host_permits(unsigned permits);
unsigned sim_host_permits_used(void);

/* sim_host_clocks - let the clocks of CPUs differ by up to @skew_ns;
 * sim_host_jump() moves all clocks, also backwards */
void sim_host_clocks(uint64_t skew_ns);
void sim_host_jump(int64_t ns);

/* sim_host_moved - CPUs came or went: helpers have to be submitted again */
void sim_host_moved(void);

void sim_process_init(struct sim_process *process, unsigned nr_helpers);

/*
 * sim_process_fork - go on as the child of a fork; by a thread in a chunk
 *
 * The run follows the child, which has only the calling thread, and new helpers.  The
 * parent gives its permits back after a while.
 */
void sim_process_fork(struct sim_process *process);

/* sim_job_run - run a job; the calling simulated thread is its caller.
 * kt_context_init() must have returned 0.  Return: as kt_context_end(). */
int sim_job_run(struct sim_job *job, unsigned max_threads, uint64_t timeout_ns);

/* The same in two parts, for a detached job. */
void sim_job_begin(struct sim_job *job, unsigned max_threads,
		   uint64_t timeout_ns);
int sim_job_finish(struct sim_job *job);

/* sim_job_resubmit - of a detached job: kt_context_resubmit() */
void sim_job_resubmit(struct sim_job *job);

/* sim_has_permit - is the calling thread a helper in a chunk, with permits? */
bool sim_has_permit(void);

/* sim_chunk_begins - by the calling thread, of the job that it is in;
 * sim_chunk_ends(): before the chunk function returns, @done if not an error */
void sim_chunk_begins(void);
void sim_chunk_ends(bool done);

/* sim_clocks_differ - may a clock go back, or show less than another? */
bool sim_clocks_differ(void);

/* sim_job_check_over - nothing of the job is left anywhere */
void sim_job_check_over(const struct sim_job *job);

/* A trace on standard error, while sim_traced is set. */
extern bool sim_traced;
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* KTASK_SIM_HOST_H */
