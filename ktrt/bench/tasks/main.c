/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One case of one runtime: see cases.h.  A first, smaller go is not counted; it is
 * all there is where it shall be small.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/tasks/cases.h"
#include "bench/tasks/parts.h"

#define WAKES 101

static double loops_per_ns;
static uint64_t stamp_ns;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

double thread_ns(void)
{
	return (double)read_clock(CLOCK_THREAD_CPUTIME_ID);
}

bool beside_others(void)
{
	return getenv("BENCH_TASKS_BUSY");
}

void task_nothing(void)
{
	__asm__ volatile("" ::: "memory");
}

static void spin_loops(uint64_t nr)
{
	while (nr--)
		__asm__ volatile("" ::: "memory");
}

void task_work(int ns)
{
	spin_loops((uint64_t)(ns * loops_per_ns));
}

void task_index(size_t index, size_t nr)
{
	spin_loops(index < nr / 4 * 3 ? 8 : 128);
}

#define CELL_NS 10000

char cell_data[CELLS];
/* How many sweeps were there; plain, as dependences order it. */
static int swept[CELLS];
static bool is_swept_wrongly;

void task_cell(int sweep, int cell)
{
	if (swept[cell] != sweep || (cell && swept[cell - 1] <= sweep))
		__atomic_store_n(&is_swept_wrongly, true, __ATOMIC_RELAXED);
	task_work(CELL_NS);
	swept[cell] = sweep + 1;
}

void task_stamp(void)
{
	__atomic_store_n(&stamp_ns, now_ns(), __ATOMIC_RELEASE);
}

static void calibrate_loops(void)
{
	uint64_t start = read_clock(CLOCK_THREAD_CPUTIME_ID);

	spin_loops(20000000);
	loops_per_ns =
		2e7 / (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - start);
}

static int compare_times(const void *a, const void *b)
{
	double one = *(const double *)a, two = *(const double *)b;

	return one < two ? -1 : one > two;
}

double median_of(double *values, int nr)
{
	qsort(values, (size_t)nr, sizeof(values[0]), compare_times);
	return values[nr / 2];
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
	median_ns = median_of(took, WAKES);
}

static long nr_fib(int n)
{
	return n < 2 ? 1 : 1 + nr_fib(n - 1) + nr_fib(n - 2);
}

#define FIB 26
#define FIB_SMALL 18

/* Does it with few or all tasks; whether the result is right. */
static bool do_fib(bool is_small)
{
	return is_small ? cases.fib(FIB_SMALL) == 2584
			: cases.fib(FIB) == 121393;
}

static bool do_block(bool is_small, double *nr)
{
	int nr_tasks = is_small ? 40 : 400;

	cases.block(nr_tasks);
	*nr = nr_tasks;
	return blocking_is_right(nr_tasks);
}

#define SWEEPS 50
#define SWEEP_TIMES 5

/* outside-NS */
static double make_outside(const char *name, double share)
{
	int ns = atoi(strchr(name, '-') + 1);
	int nr = (int)((ns < 1000 ? 500000 : 100000) * share);

	(cases.outside ? cases.outside : cases.work)(nr, ns);
	return nr;
}

/* As do_case(); NO_PROGRAM: there is no such thing. */
static double do_sweeps(bool is_small, bool is_weak)
{
	int times = is_small ? 1 : SWEEP_TIMES;
	uint64_t start = now_ns();

	for (int i = 0; i < times; i++) {
		memset(swept, 0, sizeof(swept));
		if (!cases.sweep || !cases.sweep(SWEEPS, is_weak))
			return NO_PROGRAM;
		for (int cell = 0; cell < CELLS; cell++)
			is_swept_wrongly |= swept[cell] != SWEEPS;
	}
	if (is_swept_wrongly)
		return -1;
	return (double)(now_ns() - start) / times / SWEEPS / CELLS;
}

/* Does the case.  Return: nanoseconds a task, or as program_run() below 0. */
static double do_case(const char *name, bool is_small, int threads)
{
	double share = is_small ? 0.1 : 1, nr = 0;
	bool is_fib = !strcmp(name, "fib");
	long nr_calls = is_fib ? nr_fib(is_small ? FIB_SMALL : FIB) : 0;
	uint64_t start = now_ns();
	bool is_right = true;

	if (!strcmp(name, "empty"))
		cases.empty((int)(nr = 500000 * share));
	else if (!strcmp(name, "makers"))
		cases.makers((int)(nr = 500000 * share), threads);
	else if (!strcmp(name, "chain"))
		cases.chain((int)(nr = 200000 * share));
	else if (!strcmp(name, "fans"))
		cases.fans((int)(nr = 2000 * share)), nr *= 17;
	else if (is_fib)
		is_right = do_fib(is_small), nr = (double)nr_calls;
	else if (!strcmp(name, "work"))
		cases.work((int)(nr = 100000 * share), 2000);
	else if (!strncmp(name, "outside-", 8))
		nr = make_outside(name, share);
	else if (!strncmp(name, "block", 5))
		is_right = do_block(is_small, &nr);
	else if (!strncmp(name, "nested", 6))
		return do_sweeps(is_small, !strcmp(name, "nested-weak"));
	else if (!strcmp(name, "loop") && cases.loop)
		cases.loop((size_t)(nr = 2e6 * share));
	else
		return program_run(cases.programs, name, is_small);
	return is_right ? (double)(now_ns() - start) / nr : -1;
}

/* Tasks that block wait longer than others' turns. */
static double do_often(const char *name, int threads)
{
	bool once = !beside_others() || !strncmp(name, "block", 5);
	uint64_t start = now_ns();
	double sum = 0;
	int nr = 0;

	do {
		double ns = do_case(name, false, threads);

		if (ns < 0)
			return ns;
		sum += ns;
		nr++;
	} while (!once && now_ns() - start < BESIDE_NS);
	return sum / nr;
}

static double do_both(const char *name, bool is_small, int threads)
{
	double first;

	blocking_reset();
	first = do_case(name, true, threads);
	if (first < 0 || is_small)
		return first;
	blocking_reset();
	return do_often(name, threads);
}

static double time_wake(const char *name)
{
	bool is_task = !strcmp(name, "wake-task");

	wake = is_task ? cases.wake_task : cases.wake;
	if (is_task && cases.within)
		cases.within(time_wakes);
	else
		time_wakes();
	return median_ns;
}

/* From before the runtime was started to its first task's first instruction. */
static double time_start(uint64_t start_ns)
{
	cases.wake();
	return (double)(__atomic_load_n(&stamp_ns, __ATOMIC_ACQUIRE) -
			start_ns);
}

int main(int argc, char **argv)
{
	bool is_small = argc == 4 && !strcmp(argv[3], "small"), is_graph;
	uint64_t start_ns;
	double ns;

	if (argc != 3 && !is_small) {
		fprintf(stderr, "usage: %s CASE THREADS [small]\n", argv[0]);
		return 2;
	}
	calibrate_loops();
	is_graph = graph_choose(argv[1]);
	if ((is_graph && !cases.run_graph) ||
	    (!strncmp(argv[1], "block", 5) && !blocking_choose(argv[1])))
		return 2;
	if (!strcmp(argv[1], "idle"))
		idle_begin();
	if (is_graph)
		graph_begin(atoi(argv[2]));
	start_ns = now_ns();
	cases.start(atoi(argv[2]));
	if (is_graph)
		ns = graph_measure(argv[1], atoi(argv[2]), is_small);
	else if (!strncmp(argv[1], "wake", 4))
		ns = time_wake(argv[1]);
	else if (!strcmp(argv[1], "start"))
		ns = time_start(start_ns);
	else if (!strcmp(argv[1], "idle"))
		ns = idle_measure();
	else
		ns = do_both(argv[1], is_small, atoi(argv[2]));
	if (ns == NO_PROGRAM)
		return 2;
	cases.stop();
	if (ns == NO_FIGURE) {
		fprintf(stderr, "%s: no figure: others use the machine\n",
			argv[1]);
		return 3;
	}
	if (ns < 0)
		fprintf(stderr, "%s: no right result\n", argv[1]);
	else
		printf("%.1f\n", ns);
	return ns < 0;
}
