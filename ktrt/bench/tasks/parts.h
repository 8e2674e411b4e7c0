/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts of a program of `make bench-tasks`: main.c has the cases that are timed
 * as a whole, graphs.c those of graphs, blocking.c what tasks block in, idle.c what
 * others do beside an idle runtime.
 */
#ifndef BENCH_TASKS_PARTS_H
#define BENCH_TASKS_PARTS_H

#include <stdbool.h>
#include <stdint.h>

uint64_t now_ns(void);
/* CPU time of the calling thread */
double thread_ns(void);

/* Of @nr, which it sorts. */
double median_of(double *values, int nr);

/* Do processes compute beside it that run.pl has made?  Then times are means of BESIDE_NS: a
 * case may be shorter than one turn of theirs. */
bool beside_others(void);
#define BESIDE_NS 1000000000

/* Is that the name of a case of a graph?  Then that graph is chosen. */
bool graph_choose(const char *name);

/* Before the runtime begins: beside others, what do threads get that only compute? */
void graph_begin(int threads);

#define NO_FIGURE -2.0

/*
 * graph_measure - what a case of the chosen graph comes to, in ns
 * @is_small: only look that all tasks are done, in order
 *
 * Return: NO_FIGURE: others use the machine; NO_PROGRAM: there is no such case; else
 * below 0: they are not.
 */
double graph_measure(const char *name, int threads, bool is_small);

/* Is that the name of a case whose tasks block?  Then they do so as it says; ends the
 * program where that is not possible. */
bool blocking_choose(const char *name);

/* Forget what was read, and how many tasks have blocked. */
void blocking_reset(void);

/* Have @nr tasks blocked as they were to? */
bool blocking_is_right(int nr);

/*
 * idle_begin - make two processes, before the runtime is started
 * idle_measure - how long a byte goes to and fro between them, in ns, beside the
 *	runtime, which did one task and sleeps; below 0: an error
 */
void idle_begin(void);
double idle_measure(void);

#endif /* BENCH_TASKS_PARTS_H */
