/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Graphs of tasks in steps, and four measures of them: nanoseconds a task; the
 * least task time at which half of all time is the tasks' (METG); the briefest
 * run of tasks without edges; and what making and running take alone, by dependences and by
 * one thread, of which the sum is METG's lower bound for two.
 *
 * Names: PATTERN, metg-PATTERN[-WIDTH][-uneven], wide-NODES-NS, making-PATTERN[-WIDTH],
 * running-PATTERN[-WIDTH].
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tasks/cases.h"
#include "bench/tasks/parts.h"

#define WIDTH 8
/* of all steps, whatever the width */
#define TASKS 4000
#define WIDE_RUNS 300
/* No more than caches hold, as nothing is done while they are made. */
#define PART_TASKS 1000
#define PART_RUNS 100
#define TIMED_RUNS 25
#define METG_MOST 1e6
#define MOST_THREADS 256

static struct task_graph graph = { WIDTH, TASKS / WIDTH, NULL };
/* What each task computes, in ns; 0: nothing; below 0: it checks those before. */
static int task_ns;
static bool is_uneven;
/* How often each was done in this run. */
static unsigned char *done;
static bool is_wrong;

/* ---- patterns ---- */

static int list_neighbours(int width, int point, int reach, int *points)
{
	int nr = 0;

	for (int other = point - reach; other <= point + reach; other++)
		if (other >= 0 && other < width)
			points[nr++] = other;
	return nr;
}

static int before_stencil(int width, int step, int point, int *points)
{
	return list_neighbours(width, point, 1, points);
}

static int before_nearest(int width, int step, int point, int *points)
{
	return list_neighbours(width, point, 2, points);
}

/* Itself, and a partner that is twice as far away at each step. */
static int before_fft(int width, int step, int point, int *points)
{
	int nr = 1, far;

	while (1 << nr < width)
		nr++;
	far = 1 << (step - 1) % nr;
	points[0] = point;
	points[1] = point ^ far;
	return points[1] < width ? 2 : 1;
}

static int before_all(int width, int step, int point, int *points)
{
	return list_neighbours(width, point, width, points);
}

static int before_none(int width, int step, int point, int *points)
{
	return 0;
}

static const struct {
	const char *name;
	int (*before)(int width, int step, int point, int *points);
} patterns[] = {
	{ "stencil", before_stencil }, { "nearest", before_nearest },
	{ "fft", before_fft },	       { "all_to_all", before_all },
	{ "trivial", before_none },
};

/* The rest of a name: [-WIDTH][-uneven] */
static bool choose_shape(const char *rest)
{
	char *end = (char *)rest;
	long width = WIDTH;

	if (*rest == '-' && rest[1] != 'u')
		width = strtol(rest + 1, &end, 10);
	is_uneven = !strcmp(end, "-uneven");
	graph.width = (int)width;
	graph.steps = (int)(width > 0 ? TASKS / width : 0);
	return width > 1 && width <= BEFORE_MAX && (!*end || is_uneven);
}

static bool choose_wide(const char *name)
{
	int width, ns;

	if (sscanf(name, "wide-%d-%d", &width, &ns) != 2 || width < 1 ||
	    width > 1024)
		return false;
	graph = (struct task_graph){ width, 1, before_none };
	task_ns = ns;
	return true;
}

static bool begins_with(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static bool is_part(const char *name)
{
	return begins_with(name, "making-") || begins_with(name, "running-");
}

bool graph_choose(const char *name)
{
	const char *pattern = begins_with(name, "metg-") || is_part(name)
				      ? strchr(name, '-') + 1
				      : name;
	size_t length = strcspn(pattern, "-");

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (length == strlen(patterns[i].name) &&
		    !strncmp(pattern, patterns[i].name, length)) {
			graph.before = patterns[i].before;
			return choose_shape(pattern + length);
		}
	return choose_wide(name);
}

/* ---- tasks ---- */

/* All before it were done in this run, and it was not. */
static void check_point(int number)
{
	int points[BEFORE_MAX], step = number / graph.width;
	int nr = step ? graph.before(graph.width, step, number % graph.width,
				     points)
		      : 0;

	while (nr--)
		if (!__atomic_load_n(
			    &done[(step - 1) * graph.width + points[nr]],
			    __ATOMIC_RELAXED))
			__atomic_store_n(&is_wrong, true, __ATOMIC_RELAXED);
	__atomic_fetch_add(&done[number], 1, __ATOMIC_RELAXED);
}

/* 0 to 2047, as often each */
static int spread_number(int number)
{
	return (int)((unsigned)number * 2654435769u >> 21);
}

static void do_point(int number)
{
	if (task_ns < 0)
		check_point(number);
	else if (is_uneven)
		task_work(task_ns * spread_number(number) / 1024);
	else
		task_work(task_ns);
}

void task_point(int number)
{
	if (task_ns)
		do_point(number);
	else
		task_nothing();
}

/* ---- measures ---- */

static int run_graphs(int times)
{
	for (int i = 0; i < times; i++)
		cases.run_graph(&graph);
	return times * graph.width * graph.steps;
}

static bool is_run_right(void)
{
	int nr = graph.width * graph.steps;

	memset(done, 0, (size_t)nr);
	run_graphs(1);
	while (nr--)
		if (done[nr] != 1)
			return false;
	return !is_wrong;
}

/* Twice, for what is made once. */
static double check_graph(void)
{
	bool is_right;

	done = calloc((size_t)(graph.width * graph.steps), 1);
	if (!done)
		abort();
	task_ns = -1;
	is_right = is_run_right() && is_run_right();
	free(done);
	return is_right ? 0 : -1;
}

/* Of so many runs, each too brief to be interrupted, the briefest; ns a node. */
static double find_least(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < WIDE_RUNS; i++) {
		uint64_t start = now_ns(), took;

		run_graphs(1);
		took = now_ns() - start;
		least = took < least ? took : least;
	}
	return (double)least / (graph.width * graph.steps);
}

/* Empty tasks; of so many runs the least, ns each. */
static double time_part(const char *name)
{
	double least = 1e18, making, running, took;

	if (!cases.part_graph)
		return NO_PROGRAM;
	graph.steps = PART_TASKS / graph.width;
	for (int i = 0; i < PART_RUNS; i++) {
		cases.part_graph(&graph, &making, &running);
		took = begins_with(name, "making-") ? making : running;
		least = took < least ? took : least;
	}
	return least / (graph.width * graph.steps);
}

static double time_runs(void)
{
	uint64_t start;
	long nr = 0;

	run_graphs(2);
	start = now_ns();
	do
		nr += run_graphs(TIMED_RUNS);
	while (beside_others() && now_ns() - start < BESIDE_NS);
	return (double)(now_ns() - start) / (double)nr;
}

/* A window of METG; beside others many turns of theirs. */
static uint64_t window_ns = 40000000;
static uint64_t patience_ns = 10000000000;
/* Of a CPU's time, what a thread gets that only computes. */
static double fair_share = 1;

static void *compute_until(void *end_ns)
{
	double *used_ns = malloc(sizeof(*used_ns));

	if (!used_ns)
		abort();
	while (now_ns() < *(const uint64_t *)end_ns)
		;
	*used_ns = thread_ns();
	return used_ns;
}

void graph_begin(int threads)
{
	uint64_t start = now_ns(), end = start + BESIDE_NS;
	pthread_t ids[MOST_THREADS];
	double used_ns = 0;

	if (!beside_others())
		return;
	for (int i = 0; i < threads; i++)
		if (i == MOST_THREADS ||
		    pthread_create(&ids[i], NULL, compute_until, &end))
			abort();
	for (int i = 0; i < threads; i++) {
		double *used;

		pthread_join(ids[i], (void **)&used);
		used_ns += *used;
		free(used);
	}
	fair_share = used_ns / (double)(now_ns() - start) / threads;
	window_ns *= 10;
	patience_ns *= 10;
}

/* Of all threads' time, how much is that of tasks of @ns; of what they can get. */
static double find_efficiency(double ns, int threads)
{
	uint64_t start = now_ns();
	double tasks_ns = 0;

	task_ns = (int)ns;
	do
		tasks_ns += run_graphs(1) * (double)task_ns;
	while (now_ns() - start < window_ns);
	return tasks_ns / (double)(now_ns() - start) / threads / fair_share;
}

#define WINDOWS 3
#define HALF 0.5

/* The best of some windows: others may have used the machine in one. */
static double find_best_efficiency(double ns, int threads)
{
	double best = 0;

	for (int i = 0; i < WINDOWS && best < HALF; i++) {
		double share = find_efficiency(ns, threads);

		best = share > best ? share : best;
	}
	return best;
}

/*
 * The briefest tasks, within a tenth, at which half of the time is theirs (E.
 * Slaughter et al., "Task Bench", SC 2020).  A task costs about what it costs at
 * others: so much less is not tried.  As that may have gone too far, what lies between
 * the last two is halved.
 */
static double find_metg(int threads)
{
	uint64_t start = now_ns();
	double ns = 20, less = ns, share, least;

	run_graphs(2);
	while ((share = find_best_efficiency(ns, threads)) < HALF) {
		less = ns;
		least = 0.7 * ns * (1 / share - 1);
		ns = least > ns * 1.1 ? least : ns * 1.1;
		/* Not on a machine that others use half of. */
		if (ns > METG_MOST || now_ns() - start > patience_ns)
			return NO_FIGURE;
	}
	while (ns > less * 1.1) {
		double middle = (less + ns) / 2;

		if (find_best_efficiency(middle, threads) < HALF)
			less = middle;
		else
			ns = middle;
	}
	return ns;
}

double graph_measure(const char *name, int threads, bool is_small)
{
	if (cases.make_graph)
		cases.make_graph(&graph);
	if (is_small)
		return check_graph();
	if (graph.steps == 1)
		return find_least();
	if (is_part(name))
		return time_part(name);
	return begins_with(name, "metg-") ? find_metg(threads) : time_runs();
}
