/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Measurements of ktaskd: what page faults cost beside it, of processes that it does not
 * serve, and what a static program gains that it serves.
 *
 * The first needs a guest whose clock counts instructions, a nanosecond each, and that has
 * one CPU: whatever the daemon does while a process touches memory is seen.  So it is the
 * most that faults can cost: on a machine with an idle CPU the daemon takes none from
 * the process.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "guest.h"
#include "made_ahead.h"

#define NAME "measured"
#define OTHER_NAME "other"
#define TURNS 3
#define FAULTS_LEN (128 * MIB)
#define FAULTS_PAGES (FAULTS_LEN / PAGE)
/* Times that the memory is mapped and touched in a turn. */
#define PASSES 5
#define IDLE_MS 5000
/* For a daemon to have its helpers. */
#define BEGIN_MS 500
#define SERVED_LEN (1536 * MIB)

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_of(double values[TURNS])
{
	qsort(values, TURNS, sizeof(*values), compare_values);
	return values[TURNS / 2];
}

/* As an administrator would. */
static pid_t begin_daemon(void)
{
	pid_t pid = fork();

	if (!pid) {
		execl("/ktaskd", "ktaskd", "--name", NAME, (char *)NULL);
		_exit(127);
	}
	sleep_ms(BEGIN_MS);
	return pid;
}

/* What a process tells PID 1. */
struct told {
	volatile double seconds;
	volatile long faults;
};

static struct told *share_told(void)
{
	return mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* ---- faults ---- */

struct fault_case {
	const char *what;
	const char *name; /* NULL: there is no daemon */
	bool in_order;
};

/* Each time the same order. */
static void order_pages(unsigned order[FAULTS_PAGES], bool in_order)
{
	unsigned seed = 1;

	for (unsigned i = 0; i < FAULTS_PAGES; i++)
		order[i] = i;
	for (unsigned i = FAULTS_PAGES - 1; !in_order && i; i--) {
		unsigned other = (unsigned)rand_r(&seed) % (i + 1);
		unsigned page = order[i];

		order[i] = order[other];
		order[other] = page;
	}
}

static void touch_in_passes(const struct fault_case *how, struct told *told)
{
	static unsigned order[FAULTS_PAGES];
	double sum = 0;
	long before;

	if (how->name)
		prctl(PR_SET_NAME, how->name);
	order_pages(order, how->in_order);
	before = count_faults();
	for (int pass = 0; pass < PASSES; pass++) {
		char *memory = map_memory(FAULTS_LEN);
		double begin = seconds_now();

		if (!memory)
			_exit(9);
		for (size_t i = 0; i < FAULTS_PAGES; i++)
			*(volatile char *)(memory + order[i] * PAGE) = 1;
		sum += seconds_now() - begin;
		munmap(memory, FAULTS_LEN);
	}
	told->faults = count_faults() - before;
	told->seconds = sum;
	_exit(0);
}

/* Return: what a page takes, in ns; @faults: how many it made by faults of its own */
static double time_faults(const struct fault_case *how, long *faults)
{
	struct told *told = share_told();
	pid_t pid = fork();
	double ns;

	if (!pid)
		touch_in_passes(how, told);
	status_of(pid);
	ns = told->seconds * 1e9 / FAULTS_PAGES / PASSES;
	*faults = told->faults;
	munmap(told, PAGE);
	return ns;
}

/* CPU time of its first thread, which polls. */
static double cpu_ns(pid_t pid)
{
	char path[40], text[100];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	read_file(path, text, sizeof(text));
	return strtod(text, NULL);
}

/* A part of the time since @begin, in percent; 0 without a daemon. */
static double percent_since(pid_t daemon, double before_ns, double begin)
{
	if (!daemon)
		return 0;
	return (cpu_ns(daemon) - before_ns) / (seconds_now() - begin) / 1e7;
}

/* While it finds nobody to serve. */
static double percent_unserving(pid_t daemon)
{
	double before = cpu_ns(daemon), begin = seconds_now();

	sleep_ms(IDLE_MS);
	return percent_since(daemon, before, begin);
}

/* Of the first case of its kind, which has no daemon, and of the others beside it. */
static const struct fault_case fault_cases[] = {
	{ "at random, without the daemon", NULL, false },
	{ "at random, of another name", OTHER_NAME, false },
	{ "at random, watched", NAME, false },
	{ "in order, without the daemon", NULL, true },
	{ "in order, of another name", OTHER_NAME, true },
	{ "in order, watched, no CPU is idle", NAME, true },
};

#define NR_CASES (sizeof(fault_cases) / sizeof(*fault_cases))

void measure_faults_beside_daemon(void)
{
	static double ns[NR_CASES][TURNS], cpu[NR_CASES][TURNS], idle[TURNS];
	static long faults[NR_CASES];
	double plain = 1;

	write_file(PAGE_SIZES, "never");
	for (int turn = 0; turn < TURNS; turn++) {
		pid_t daemon = 0;

		for (size_t i = 0; i < NR_CASES; i++) {
			double before, begin;

			if (fault_cases[i].name && !daemon)
				daemon = begin_daemon();
			if (!fault_cases[i].name && daemon) {
				kill_process(daemon);
				daemon = 0;
			}
			before = daemon ? cpu_ns(daemon) : 0;
			begin = seconds_now();
			ns[i][turn] = time_faults(&fault_cases[i], &faults[i]);
			cpu[i][turn] = percent_since(daemon, before, begin);
			note_line("turn %d, %s: %.1f", turn,
				  fault_cases[i].what, ns[i][turn]);
		}
		idle[turn] = percent_unserving(daemon);
		kill_process(daemon);
	}
	for (size_t i = 0; i < NR_CASES; i++) {
		double own = median_of(ns[i]);

		if (!fault_cases[i].name)
			plain = own;
		note_line(
			"a page %s: %.1f instructions, %+.2f %%, %.3f faults, "
			"the daemon's CPU time %.2f %%",
			fault_cases[i].what, own, (own / plain - 1) * 100,
			(double)faults[i] / FAULTS_PAGES / PASSES,
			median_of(cpu[i]));
	}
	note_line("the daemon's CPU time while it finds nobody: %.2f %%",
		  median_of(idle));
}

/* ---- a program that is served ---- */

static void fill_as_program(struct told *told, bool computes)
{
	long before = count_faults();
	double begin = seconds_now();
	char *memory = map_memory(SERVED_LEN);

	prctl(PR_SET_NAME, NAME);
	if (!memory)
		_exit(9);
	for (size_t at = 0; at < SERVED_LEN; at += PAGE) {
		if (!computes)
			memset(memory + at, 1, PAGE);
		for (size_t i = 0; computes && i < PAGE; i += 8)
			*(volatile uint64_t *)(memory + at + i) =
				(at + i) * 2654435761u;
	}
	told->seconds = seconds_now() - begin;
	told->faults = count_faults() - before;
	_exit(0);
}

static void measure_program(const char *what, bool computes)
{
	static double seconds[2][TURNS], faults[2][TURNS], gains[TURNS];
	struct told *told = share_told();

	for (int turn = 0; turn < 2 * TURNS; turn++) {
		int served = turn & 1;
		pid_t daemon = served ? begin_daemon() : 0, pid = fork();

		if (!pid)
			fill_as_program(told, computes);
		status_of(pid);
		seconds[served][turn / 2] = told->seconds;
		faults[served][turn / 2] = (double)told->faults;
		if (!served)
			continue;
		gains[turn / 2] = seconds[0][turn / 2] / seconds[1][turn / 2];
		kill_process(daemon);
	}
	for (int i = 0; i < TURNS; i++)
		note_line("%s, turn %d: %.2f", what, i, gains[i]);
	note_line("%s: %.3f s and %.0f faults, served %.3f s and %.0f faults: "
		  "%.2f",
		  what, median_of(seconds[0]), median_of(faults[0]),
		  median_of(seconds[1]), median_of(faults[1]),
		  median_of(gains));
	munmap(told, PAGE);
}

void measure_served_program(void)
{
	write_file(PAGE_SIZES, "never");
	measure_program("memset of 1536 MiB", false);
	measure_program("a loop that computes 1536 MiB", true);
}
