/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The loads that schedulers are compared by.  Each says what came of it in lines that
 * ktask/bench/vm/schedulers reads: "value SCHEDULER|LOAD|MEASURE NUMBER".
 *
 * A load returns 0 or an errno.
 */
#ifndef BENCH_LOADS_H
#define BENCH_LOADS_H

struct turn {
	const char *scheduler;
	unsigned cpus;
};

/* report_value - one figure of a load */
void report_value(const struct turn *turn, const char *load,
		  const char *measure, double value);

/* perf's benchmarks: 40 tasks that send messages (hackbench), and two that take turns */
int messages_run(const struct turn *turn);
int pipe_run(const struct turn *turn);

/*
 * requests_run - how late a worker is that is sent a request, and until it has done it
 *
 * After schbench: a thread sends requests, workers wait for them and compute.  Three
 * times: CPUs that are mostly idle, twice as many busy workers as CPUs, and as the first
 * beside a computing thread of SCHED_IDLE for each CPU.
 */
int requests_run(const struct turn *turn);

/* share_run - the part that computing threads have beside as many of SCHED_IDLE */
int share_run(const struct turn *turn);

/* neighbours_run - what bench-neighbour says of processes on all CPUs beside ktask's jobs */
int neighbours_run(const struct turn *turn);

#endif /* BENCH_LOADS_H */
