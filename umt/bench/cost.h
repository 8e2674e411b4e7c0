/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the parts of umt-cost share. */
#ifndef BENCH_UMT_COST_H
#define BENCH_UMT_COST_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <umt.h>

static inline double clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline double now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static inline double take_quantile(double *values, size_t nr, double q)
{
	qsort(values, nr, sizeof(*values), by_value);
	return values[(size_t)(q * (double)(nr - 1))];
}

static inline void fail_with(const char *what)
{
	fprintf(stderr, "bench-umt-cost: %s\n", what);
	exit(1);
}

static inline void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static inline void write_byte(int fd, char *byte)
{
	if (write(fd, byte, 1) != 1)
		fail_with("writing a pipe");
}

static inline void read_byte(int fd, char *byte)
{
	if (read(fd, byte, 1) != 1)
		fail_with("reading a pipe");
}

/* latency.c: of @subscriber, whose only threads it will be */
void latency_measure(struct umt *subscriber);

#endif /* BENCH_UMT_COST_H */
