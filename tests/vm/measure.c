/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Measurements instead of tests: those of ktask_bench.ko (ktask/bench/vm), and what a
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
#include <unistd.h>

#include <linux/ktask.h>

#include "guest.h"

#define DIR_BENCH "/sys/kernel/debug/ktask_bench"
#define ROUNDS 11
#define LEN_MAX (128 * MIB)

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
				note_line("%s", line);
	}
}

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_of(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare_values);
	return values[ROUNDS / 2];
}

/* How a request is done: the first is what the others are measured by. */
enum side { ONE, ALL, TWO_THREADS, TWO_PROCESSES, NR_SIDES };

static const char *const side_names[] = {
	[ALL] = "all",
	[TWO_THREADS] = "two with a half each",
	[TWO_PROCESSES] = "two processes with a half each",
};

static double time_request(int fd, unsigned long what, char *addr, size_t len,
			   enum side side)
{
	unsigned flags = what == KTASK_IOC_POPULATE ? KTASK_MEM_WRITE : 0;
	double seconds, start = seconds_now();
	int error;

	if (side >= TWO_THREADS)
		return time_halves(fd, what, addr, len, side == TWO_PROCESSES);
	if (side == ONE)
		error = request_alone(fd, what, addr, len);
	else
		error = do_request(fd, what, addr, len, flags, NULL);
	seconds = seconds_now() - start;
	if (what == KTASK_IOC_PIN)
		do_request(fd, KTASK_IOC_UNPIN, addr, len, 0, NULL);
	return error ? 0 : seconds;
}

/* Untouched memory, or @touched.  What is there is not divided: a process would
 * have to copy it first. */
static void measure_request(const char *name, unsigned long what, size_t len,
			    bool touched)
{
	static double seconds[NR_SIDES][ROUNDS];
	char *addr = map_memory(len);
	int fd = open_device();
	int nr_sides = touched ? TWO_THREADS : NR_SIDES;
	double one;

	for (int i = 0; i < nr_sides * ROUNDS; i++) {
		enum side side = (enum side)(i % nr_sides);

		madvise(addr, len, MADV_DONTNEED);
		if (touched)
			memset(addr, 1, len);
		seconds[side][i / nr_sides] =
			time_request(fd, what, addr, len, side);
	}
	one = median_of(seconds[ONE]);
	for (int side = ALL; side < nr_sides; side++) {
		double all = median_of(seconds[side]);

		note_line(
			"%s %lu MiB, one thread against %s: %.2f (%.0f us against "
			"%.0f us)",
			name, len / MIB, side_names[side], one / all, one * 1e6,
			all * 1e6);
	}
	munmap(addr, len);
	close(fd);
}

static void measure_requests(void)
{
	for (size_t len = LEN_MAX / 4; len <= LEN_MAX; len *= 4) {
		measure_request("pin untouched", KTASK_IOC_PIN, len, false);
		measure_request("pin touched", KTASK_IOC_PIN, len, true);
		measure_request("populate", KTASK_IOC_POPULATE, len, false);
		measure_request("clear", KTASK_IOC_CLEAR, len, true);
	}
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
			note_line("%s", text);
	}
}

#define TURNS 9

static void count_empty_job(const char *side, const char *name)
{
	char path[200], ns[40];

	snprintf(path, sizeof(path), "/sys/module/ktask_empty/parameters/%s",
		 name);
	read_file(path, ns, sizeof(ns));
	note_line("%s %s %lu", side, name, strtoul(ns, NULL, 10));
}

/* The module of each of two trees by turns; loading its client measures. */
static void count_empty_jobs(const char *side)
{
	char path[80];
	int error;

	snprintf(path, sizeof(path), "/%s/ktask.ko", side);
	error = load_module(path, "");
	snprintf(path, sizeof(path), "/%s/ktask_empty.ko", side);
	if (!error)
		error = load_module(path, "");
	if (error) {
		note_line("%s: %s", path, strerror(error));
		return;
	}
	count_empty_job(side, "idle");
	count_empty_job(side, "ranges");
	count_empty_job(side, "one");
	count_empty_job(side, "busy");
	unload_module("ktask_empty");
	unload_module("ktask");
}

void measure_case(unsigned what)
{
	if (what == 2) {
		run_program("/bench-claim", NULL);
		return;
	}
	if (what == 3) {
		measure_boot();
		return;
	}
	if (what == 5) {
		for (int i = 0; i < 2 * TURNS; i++)
			count_empty_jobs(i & 1 ? "new" : "old");
		return;
	}
	if (what == 6) {
		run_program("/bench-users", NULL);
		return;
	}
	if (load_module("/ktask.ko", "") ||
	    (what == 1 && load_module("/ktask_bench.ko", ""))) {
		note_line("the modules cannot be loaded");
		return;
	}
	note_line("%ld CPUs", sysconf(_SC_NPROCESSORS_ONLN));
	if (what == 4)
		measure_requests();
	else if (what == 7)
		measure_faults_beside_daemon();
	else if (what == 8)
		measure_served_program();
	else
		measure_in_kernel();
}
