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
	if (!nr)
		exit(2);
	return (double)(now_ns() - start) / nr;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s CASE THREADS\n", argv[0]);
		return 2;
	}
	calibrate();
	cases.start(atoi(argv[2]));
	if (!strncmp(argv[1], "wake", 4)) {
		bool task = !strcmp(argv[1], "wake-task");

		wake = task ? cases.wake_task : cases.wake;
		if (task && cases.within)
			cases.within(time_wakes);
		else
			time_wakes();
		printf("%.1f\n", median_ns);
	} else {
		do_case(argv[1], 0.1, atoi(argv[2]));
		printf("%.1f\n", do_case(argv[1], 1, atoi(argv[2])));
	}
	cases.stop();
	return 0;
}
