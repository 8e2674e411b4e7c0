/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One case of one runtime: see cases.h.  A first, smaller go is not counted.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/tasks/cases.h"

#define WAKES 101

static double loops_per_ns;
static uint64_t stamp_ns;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

void task_nothing(void)
{
	__asm__ volatile("" ::: "memory");
}

static void loop(uint64_t nr)
{
	while (nr--)
		__asm__ volatile("" ::: "memory");
}

void task_work(int ns)
{
	loop((uint64_t)(ns * loops_per_ns));
}

void task_index(size_t index, size_t nr)
{
	loop(index < nr / 4 * 3 ? 8 : 128);
}

void task_block(void)
{
	struct timespec pause = { 0, 1000000 };

	nanosleep(&pause, NULL);
	task_work(100000);
}

void task_stamp(void)
{
	__atomic_store_n(&stamp_ns, now_ns(), __ATOMIC_RELEASE);
}

void task_point(const struct task_graph *graph)
{
	if (graph->ns)
		task_work(graph->ns);
	else
		task_nothing();
}

static void calibrate(void)
{
	uint64_t start = read_clock(CLOCK_THREAD_CPUTIME_ID);

	loop(20000000);
	loops_per_ns =
		2e7 / (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - start);
}

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, two = *(const double *)b;

	return one < two ? -1 : one > two;
}

/* From the call to the task's first instruction; workers had time to sleep. */
static void (*wake)(void);
static double median_ns;

static void time_wakes(void)
{
	double took[WAKES];

	for (int i = 0; i < WAKES; i++) {
		struct timespec pause = { 0, 3000000 };
		uint64_t start;

		nanosleep(&pause, NULL);
		start = now_ns();
		wake();
		took[i] =
			(double)(__atomic_load_n(&stamp_ns, __ATOMIC_ACQUIRE) -
				 start);
	}
	qsort(took, WAKES, sizeof(took[0]), compare);
	median_ns = took[WAKES / 2];
}

static long nr_fib(int n)
{
	return n < 2 ? 1 : 1 + nr_fib(n - 1) + nr_fib(n - 2);
}

/* ---- graphs ---- */

static int neighbours(int width, int point, int reach, int *points)
{
	int nr = 0;

	for (int other = point - reach; other <= point + reach; other++)
		if (other >= 0 && other < width)
			points[nr++] = other;
	return nr;
}

static int before_stencil(int width, int step, int point, int *points)
{
	return neighbours(width, point, 1, points);
}

static int before_nearest(int width, int step, int point, int *points)
{
	return neighbours(width, point, 2, points);
}

/* Itself, and a partner that is twice as far away at each step. */
static int before_fft(int width, int step, int point, int *points)
{
	int far = 1;

	for (int i = 1; i < step; i++)
		far = far * 2 < width ? far * 2 : 1;
	points[0] = point;
	points[1] = point ^ far;
	return points[1] < width ? 2 : 1;
}

static int before_none(int width, int step, int point, int *points)
{
	return 0;
}

static const struct {
	const char *name;
	int (*before)(int width, int step, int point, int *points);
} patterns[] = {
	{ "stencil", before_stencil },
	{ "nearest", before_nearest },
	{ "fft", before_fft },
};

#define WIDTH 8
#define STEPS 500
#define WIDE_RUNS 300

static struct task_graph graph = { WIDTH, STEPS, 0, NULL };

/* Also for "metg-NAME". */
static bool choose_pattern(const char *name)
{
	const char *pattern = strncmp(name, "metg-", 5) ? name : name + 5;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (!strcmp(pattern, patterns[i].name))
			graph.before = patterns[i].before;
	return graph.before;
}

/* "wide-NODES-NS": so many that are independent. */
static bool choose_wide(const char *name)
{
	int width, ns;

	if (sscanf(name, "wide-%d-%d", &width, &ns) != 2 || width < 1)
		return false;
	graph = (struct task_graph){ width, 1, ns, before_none };
	return true;
}

static int run_graphs(int times)
{
	for (int i = 0; i < times; i++)
		cases.run_graph(&graph);
	return times * graph.width * graph.steps;
}

/* Of so many runs, each too brief to be interrupted, the briefest; ns a node. */
static double find_least(int times)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < times; i++) {
		uint64_t start = now_ns(), took;

		run_graphs(1);
		took = now_ns() - start;
		least = took < least ? took : least;
	}
	return (double)least / (graph.width * graph.steps);
}

#define METG_MOST 1e6

/* Of all threads' time, how much is that of tasks of @ns; for 40 ms or more. */
static double efficiency(double ns, int threads)
{
	uint64_t start = now_ns();
	double tasks_ns = 0;

	graph.ns = (int)ns;
	do
		tasks_ns += run_graphs(1) * (double)graph.ns;
	while (now_ns() - start < 40000000);
	return tasks_ns / (double)(now_ns() - start) / threads;
}

/*
 * The briefest tasks, within a tenth, at which half of the time is theirs (E.
 * Slaughter et al., "Task Bench", SC 2020).  A task costs about what it costs at
 * others: so much less is not tried.
 */
static double find_metg(int threads)
{
	double ns = 20, share, least;

	while (ns < METG_MOST && (share = efficiency(ns, threads)) < 0.5) {
		least = 0.7 * ns * (1 / share - 1);
		ns = least > ns * 1.1 ? least : ns * 1.1;
	}
	return ns;
}

/* Does the case with @share of its tasks; nanoseconds a task. */
static double do_case(const char *name, double share, int threads)
{
	uint64_t start = now_ns();
	double nr = 0;
	int n;

	if (!strcmp(name, "empty"))
		cases.empty((int)(nr = 500000 * share));
	else if (!strcmp(name, "makers"))
		cases.makers((int)(nr = 500000 * share), threads);
	else if (!strcmp(name, "chain"))
		cases.chain((int)(nr = 200000 * share));
	else if (!strcmp(name, "fans"))
		cases.fans((int)(nr = 2000 * share)), nr *= 17;
	else if (!strcmp(name, "fib"))
		cases.fib(n = share < 1 ? 18 : 26), nr = (double)nr_fib(n);
	else if (!strcmp(name, "work"))
		cases.work((int)(nr = 100000 * share), 2000);
	else if (!strcmp(name, "block"))
		cases.block((int)(nr = 400 * share));
	else if (!strcmp(name, "loop") && cases.loop)
		cases.loop((size_t)(nr = 2e6 * share));
	else if (graph.before)
		nr = run_graphs((int)(25 * share));
	if (!nr)
		exit(2);
	return (double)(now_ns() - start) / nr;
}

int main(int argc, char **argv)
{
	bool wide;

	if (argc != 3) {
		fprintf(stderr, "usage: %s CASE THREADS\n", argv[0]);
		return 2;
	}
	calibrate();
	wide = choose_wide(argv[1]);
	if ((choose_pattern(argv[1]) || wide) && !cases.run_graph)
		return 2;
	cases.start(atoi(argv[2]));
	if (graph.before && cases.make_graph)
		cases.make_graph(&graph);
	if (!strncmp(argv[1], "wake", 4)) {
		bool task = !strcmp(argv[1], "wake-task");

		wake = task ? cases.wake_task : cases.wake;
		if (task && cases.within)
			cases.within(time_wakes);
		else
			time_wakes();
		printf("%.1f\n", median_ns);
	} else if (wide) {
		printf("%.1f\n", find_least(WIDE_RUNS));
	} else if (!strncmp(argv[1], "metg-", 5)) {
		double ns;

		run_graphs(2);
		ns = find_metg(atoi(argv[2]));
		/* Not on a machine that others use half of. */
		if (ns >= METG_MOST)
			return 1;
		printf("%.1f\n", ns);
	} else {
		do_case(argv[1], 0.1, atoi(argv[2]));
		printf("%.1f\n", do_case(argv[1], 1, atoi(argv[2])));
	}
	cases.stop();
	return 0;
}
