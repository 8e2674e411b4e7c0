/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The cases by OpenMP tasks; compiled by gcc (libgomp) and by clang (libomp).
 */
#include <omp.h>
#include <semaphore.h>
#include <stddef.h>

#include "bench/tasks/cases.h"

static void start_threads(int threads)
{
	omp_set_num_threads(threads);
#pragma omp parallel
	task_nothing();
}

static void stop_nothing(void)
{
}

static void run_empty(int nr)
{
#pragma omp parallel
#pragma omp single
	for (int i = 0; i < nr; i++) {
#pragma omp task
		task_nothing();
	}
}

static void run_makers(int nr, int threads)
{
#pragma omp parallel
	for (int i = 0; i < nr / threads; i++) {
#pragma omp task
		task_nothing();
	}
}

static void run_chain(int nr)
{
	int datum __attribute__((unused)) = 0;

#pragma omp parallel
#pragma omp single
	for (int i = 0; i < nr; i++) {
#pragma omp task depend(inout : datum)
		task_nothing();
	}
}

static void run_fans(int nr)
{
	int datum __attribute__((unused)) = 0;

#pragma omp parallel
#pragma omp single
	for (int i = 0; i < nr; i++) {
#pragma omp task depend(inout : datum)
		task_nothing();
		for (int j = 0; j < 16; j++) {
#pragma omp task depend(in : datum)
			task_nothing();
		}
	}
}

static long do_fib(int n)
{
	long one, two;

	if (n < 2)
		return n;
#pragma omp task shared(one)
	one = do_fib(n - 1);
#pragma omp task shared(two)
	two = do_fib(n - 2);
#pragma omp taskwait
	return one + two;
}

static long run_fib(int n)
{
	long result = 0;

#pragma omp parallel
#pragma omp single
	result = do_fib(n);
	return result;
}

static void run_work(int nr, int ns)
{
#pragma omp parallel
#pragma omp single
	for (int i = 0; i < nr; i++) {
#pragma omp task
		task_work(ns);
	}
}

static void run_block(int nr)
{
#pragma omp parallel
#pragma omp single
	for (int i = 0; i < nr; i++) {
#pragma omp task
		task_block();
	}
}

/* There are no tasks from outside: a parallel region is the nearest. */
static void wake_thread(void)
{
#pragma omp parallel
	if (omp_get_thread_num() == omp_get_num_threads() - 1)
		task_stamp();
}

/* In a region, whose other threads sleep in its barrier. */
static void wake_task(void)
{
	sem_t done;

	sem_init(&done, 0, 0);
#pragma omp task shared(done) if (omp_get_num_threads() > 1)
	{
		task_stamp();
		sem_post(&done);
	}
	while (sem_wait(&done))
		;
	sem_destroy(&done);
}

static void call_within(void (*loop)(void))
{
#pragma omp parallel
#pragma omp single
	loop();
}

#define FEW 5

/* Of each point the data of two steps.  Where fewer than FEW points come before, one
 * is named more than once; more are named by an iterator. */
static void spawn_point(const struct task_graph *graph, int step, int point)
{
	static char data[2][1024];
	char *after __attribute__((unused)) = &data[step & 1][point];
	char *before[BEFORE_MAX];
	int points[BEFORE_MAX], number = step * graph->width + point;
	int nr = step ? graph->before(graph->width, step, point, points) : 0;

	for (int i = 0; i < nr || i < FEW; i++)
		before[i] = &data[!(step & 1)][nr ? points[i < nr ? i : 0] : 0];
	/* clang-format off */
	if (!nr) {
#pragma omp task depend(out : after[0])
		task_point(number);
	} else if (nr <= FEW) {
#pragma omp task depend(out : after[0]) depend(in : before[0][0], \
	before[1][0], before[2][0], before[3][0], before[4][0])
		task_point(number);
	} else {
#pragma omp task depend(out : after[0]) \
	depend(iterator(int i = 0 : nr), in : before[i][0])
		task_point(number);
	}
	/* clang-format on */
}

static void run_graph(const struct task_graph *graph)
{
#pragma omp parallel
#pragma omp single
	for (int i = 0; i < graph->steps * graph->width; i++)
		spawn_point(graph, i / graph->width, i % graph->width);
}

static void run_loop(size_t nr)
{
#pragma omp parallel
#pragma omp single
#pragma omp taskloop
	for (size_t i = 0; i < nr; i++)
		task_index(i, nr);
}

/* A task's data is free once it has waited for those that it made. */
static void one_sweep(int sweep)
{
	for (int cell = 0; cell < CELLS; cell++) {
		int left __attribute__((unused)) = cell - 1;

		if (!cell) {
#pragma omp task depend(inout : cell_data[0])
			task_cell(sweep, 0);
			continue;
		}
#pragma omp task depend(inout : cell_data[cell]) depend(in : cell_data[left])
		task_cell(sweep, cell);
	}
#pragma omp taskwait
}

static bool run_sweeps(int nr, bool is_weak)
{
	if (is_weak)
		return false;
#pragma omp parallel
#pragma omp single
	for (int i = 0; i < nr; i++) {
#pragma omp task depend(inout : cell_data)
		one_sweep(i);
	}
	return true;
}

const struct runtime_cases cases = {
	start_threads, stop_nothing, run_empty, run_makers, run_chain,
	run_fans,      run_fib,	     run_work,	run_block,  wake_thread,
	wake_task,     call_within,  NULL,	run_graph,  run_loop,
	&programs,     run_sweeps,   NULL,	NULL
};
