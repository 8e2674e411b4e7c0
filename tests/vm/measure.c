/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Measurements instead of tests: those of ktask_bench.ko (bench/vm), and what a
 * program sees of /dev/ktask.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/ktask.h>

#include "guest.h"

#define DIR_BENCH "/sys/kernel/debug/ktask_bench"
#define ROUNDS 11
#define LEN (128 * MIB)

static void measure_in_kernel(void)
{
	struct dirent **names;
	int nr = scandir(DIR_BENCH, &names, NULL, alphasort);

	for (int i = 0; i < nr; i++) {
		char path[400], text[1000], *line, *rest = text;

		if (names[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), DIR_BENCH "/%s", names[i]->d_name);
		read_file(path, text, sizeof(text));
		while ((line = strsep(&rest, "\n")))
			if (*line)
				note("%s", line);
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double time_request(int fd, unsigned long what, char *addr,
			   unsigned threads)
{
	struct ktask_mem mem = {
		.size = sizeof(mem),
		.addr = (uintptr_t)addr,
		.len = LEN,
		.max_threads = threads,
		.flags = what == KTASK_IOC_POPULATE ? KTASK_MEM_WRITE : 0,
	};
	double start = now();

	if (ioctl(fd, what, &mem))
		return 0;
	return now() - start;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

/* Untouched memory, or @touched. */
static void measure_request(const char *name, unsigned long what, bool touched)
{
	double one[ROUNDS], all[ROUNDS];
	char *addr = map(LEN);
	int fd = device();

	for (int i = 0; i < 2 * ROUNDS; i++) {
		double seconds;

		madvise(addr, LEN, MADV_DONTNEED);
		if (touched)
			memset(addr, 1, LEN);
		seconds = time_request(fd, what, addr, i % 2 ? 0 : 1);
		if (what == KTASK_IOC_PIN)
			request(fd, KTASK_IOC_UNPIN, addr, LEN, 0, NULL);
		*(i % 2 ? &all[i / 2] : &one[i / 2]) = seconds;
	}
	note("%s %lu MiB, one thread against all: %.2f (%.0f us against %.0f "
	     "us)",
	     name, LEN / MIB, median(one) / median(all), median(one) * 1e6,
	     median(all) * 1e6);
	munmap(addr, LEN);
	close(fd);
}

/* What padata did before PID 1 ran: "node 0 deferred pages initialised in 10ms". */
static void measure_boot(void)
{
	static char log[1 << 20];
	char *line, *rest = log;
	int len = klogctl(3, log, sizeof(log) - 1);

	log[len > 0 ? len : 0] = 0;
	while ((line = strsep(&rest, "\n"))) {
		char *text = strstr(line, "node ");

		if (text && strstr(text, "deferred pages initialised in"))
			note("%s", text);
	}
}

void measure(unsigned what)
{
	if (what == 2) {
		run_program("/bench-claim");
		return;
	}
	if (what == 3) {
		measure_boot();
		return;
	}
	if (load("/ktask.ko", "") || load("/ktask_bench.ko", "")) {
		note("the modules cannot be loaded");
		return;
	}
	note("%ld CPUs", sysconf(_SC_NPROCESSORS_ONLN));
	measure_in_kernel();
	measure_request("pin untouched", KTASK_IOC_PIN, false);
	measure_request("pin touched", KTASK_IOC_PIN, true);
	measure_request("populate", KTASK_IOC_POPULATE, false);
	measure_request("clear", KTASK_IOC_CLEAR, true);
}
