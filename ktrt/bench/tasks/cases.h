/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What each runtime does in `make bench-tasks`, one program a runtime:
 * bench-tasks-NAME CASE THREADS prints one number.  Times are of the whole case
 * divided by its tasks, making and waiting included; run.pl alternates the
 * programs and takes medians.  What has a result compares it, and so does
 * bench-tasks-NAME CASE THREADS small for graphs, in little time.
 */
#ifndef BENCH_TASKS_CASES_H
#define BENCH_TASKS_CASES_H

#include <stddef.h>

#include "bench/programs/programs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of each step @width tasks, each after some of the step before. */
struct task_graph {
	int width, steps;
	/* the points of the step before that @point of @step comes after */
	int (*before)(int width, int step, int point, int *points);
};

#define BEFORE_MAX 64

struct runtime_cases {
	void (*start)(int threads);
	void (*stop)(void);
	/* @nr independent empty tasks by one maker */
	void (*empty)(int nr);
	/* the same by as many makers as there are threads */
	void (*makers)(int nr, int threads);
	/* @nr tasks, each to start after the one before it */
	void (*chain)(int nr);
	/* @nr times: a task, then 16 that wait for it and are waited for */
	void (*fans)(int nr);
	/* by recursion, a task for each call */
	long (*fib)(int n);
	/* @nr tasks that call task_work(ns) */
	void (*work)(int nr, int ns);
	/* @nr tasks that call task_block() */
	void (*block)(int nr);
	/* one task that calls task_stamp(), by a thread outside */
	void (*wake)(void);
	/*
	 * one such task, by a thread that then sleeps until it is done, where
	 * its runtime makes tasks: @within calls what is to be done there, or
	 * is NULL
	 */
	void (*wake_task)(void);
	void (*within)(void (*loop)(void));
	/*
	 * what can be made of a graph once, and doing all of its tasks; without
	 * the first the tasks are made each time
	 */
	void (*make_graph)(const struct task_graph *graph);
	void (*run_graph)(const struct task_graph *graph);
	/* task_index() for each index below @nr */
	void (*loop)(size_t nr);
	/* NULL: none */
	const struct runtime_programs *programs;
	/*
	 * @nr sweeps over the cells: a task each, in order, that makes a task for each
	 * cell, which comes after the cell to its left and after itself in the sweep
	 * before.  @is_weak: its sweep does not wait for what its cells wait for.
	 * NULL, or false: there is no such thing.
	 */
	bool (*sweep)(int nr, bool is_weak);
	/* work() by a thread that is none of the runtime's; NULL: work() is */
	void (*outside)(int nr, int ns);
	/* The tasks of a graph by one thread: all made before the first is done.  What
	 * of both takes, ns of its CPU time.  NULL: there is no such thing. */
	void (*part_graph)(const struct task_graph *graph, double *making,
			   double *running);
};

extern const struct runtime_cases cases;
extern const struct runtime_programs programs;

/* Computes for about @ns of CPU time. */
void task_work(int ns);
/* Computes for some nanoseconds, sixteen times as long in the last quarter. */
void task_index(size_t index, size_t nr);
/* Blocks in the kernel, most often by a sleep of a millisecond, then computes for a
 * tenth. */
void task_block(void);
#define CELLS 32
/* What dependences of sweeps name, and their work. */
extern char cell_data[CELLS];
void task_cell(int sweep, int cell);
/* What a task of a graph does, whose number is step * width + point. */
void task_point(int number);
void task_stamp(void);
/* Does nothing that the compiler could see. */
void task_nothing(void);

#ifdef __cplusplus
}
#endif

#endif /* BENCH_TASKS_CASES_H */
