/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How long the clients take: "# time NAME: seconds..." on the second serial port,
 * one number for each round.  What struct pages took is in the kernel's log.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts.h"

void tell_times(const struct times *times)
{
	char line[400];
	int at = 0;

	for (int i = 0; i < times->nr; i++)
		at += snprintf(line + at, sizeof(line) - (size_t)at, " %.6f",
			       times->seconds[i]);
	note("time %s:%s", times->name, at ? line : "");
}

static double time_of(double start)
{
	return seconds_now() - start;
}

static void measure_pool(const char *name, long from, long to, int rounds)
{
	struct times times = { .name = name };
	double start;

	for (; times.nr < rounds; times.nr++) {
		pool_set(&pool_2m, from);
		start = seconds_now();
		pool_set(&pool_2m, to);
		times.seconds[times.nr] = time_of(start);
	}
	tell_times(&times);
}

static void measure_file(const char *name, const struct pool *pool, long pages,
			 int rounds)
{
	struct times times = { .name = name };
	double start;
	int fd;

	for (; times.nr < rounds; times.nr++) {
		fd = memfd_create("bench", MFD_HUGETLB | pool->flag);
		start = seconds_now();
		if (fallocate(fd, 0, 0, pages * (off_t)pool->size))
			break;
		times.seconds[times.nr] = time_of(start);
		close(fd);
	}
	tell_times(&times);
}

/* One page of 2 MiB: what a job costs that is not worth a helper. */
static void measure_small_file(int rounds)
{
	struct times times = { .name = "fallocate one page" };
	double start;

	for (; times.nr < rounds; times.nr++) {
		int fd = memfd_create("bench", MFD_HUGETLB | pool_2m.flag);

		start = seconds_now();
		if (fallocate(fd, 0, 0, (off_t)HUGE))
			break;
		times.seconds[times.nr] = time_of(start);
		close(fd);
	}
	tell_times(&times);
}

static double seconds_to_unmap(size_t len, int advice)
{
	char *addr = map_memory(len, advice);
	double start;

	populate(addr, len);
	start = seconds_now();
	munmap(addr, len);
	return time_of(start);
}

/* Until its parent knows of its end, when its memory is free. */
static double seconds_to_exit(size_t len, int advice)
{
	double *start = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double seconds;
	pid_t pid = fork();

	if (pid == 0) {
		populate(map_memory(len, advice), len);
		*start = seconds_now();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	seconds = time_of(*start);
	munmap(start, PAGE);
	return seconds;
}

static void measure_unmap(size_t len, int rounds)
{
	static const struct {
		const char *name;
		double (*measure)(size_t len, int advice);
		int advice;
	} cases[] = {
		{ "exit 4 KiB", seconds_to_exit, MADV_NOHUGEPAGE },
		{ "exit 2 MiB", seconds_to_exit, MADV_HUGEPAGE },
		{ "munmap 4 KiB", seconds_to_unmap, MADV_NOHUGEPAGE },
		{ "munmap 2 MiB", seconds_to_unmap, MADV_HUGEPAGE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct times times = { .name = cases[i].name };

		for (; times.nr < rounds; times.nr++)
			times.seconds[times.nr] =
				cases[i].measure(len, cases[i].advice);
		tell_times(&times);
	}
}

void measure_clients(void)
{
	long pages = option("pages", 200);
	int rounds = (int)option("rounds", 5);

	if (rounds > ROUNDS_MAX)
		rounds = ROUNDS_MAX;
	if (option("vfio", 0)) {
		measure_vfio(rounds);
		return;
	}
	pool_set(&pool_1g, 1);
	measure_pool("nr_hugepages", 0, pages, rounds);
	measure_pool("nr_hugepages, fewer", pages, 0, rounds);
	pool_set(&pool_2m, pages);
	measure_file("fallocate 2 MiB", &pool_2m, pages, rounds);
	measure_small_file(rounds);
	if (pool_number(&pool_1g, -1, "free_hugepages") > 0)
		measure_file("fallocate 1 GiB", &pool_1g, 1, rounds);
	pool_set(&pool_2m, 0);
	measure_unmap((size_t)option("unmap_mib", 400) * MIB, rounds);
	note("helpers that worked in jobs: %ld", helpers_worked());
}
