/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How long the clients take: "# time NAME: seconds..." on the second serial port,
 * one number for each round.  What struct pages took is in the kernel's log.
 *
 * With series.neighbours=N, N processes compute meanwhile, each on a CPU of its own,
 * and what a million of their loops took is said as well.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts.h"

#define NEIGHBOURS_MAX 16
#define LOOPS 1000

/* Counters of the neighbours, shared with them, each in a cache line of its own. */
static struct {
	unsigned long loops;
	char line[128 - sizeof(unsigned long)];
} * neighbours;
static int nr_neighbours;

static void compute_on(int cpu, unsigned long *loops)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (;;) {
		for (volatile int i = 0; i < LOOPS; i++)
			;
		__atomic_fetch_add(loops, LOOPS, __ATOMIC_RELAXED);
	}
}

/* They end with the guest. */
static void start_neighbours(int nr)
{
	nr_neighbours = nr < NEIGHBOURS_MAX ? nr : NEIGHBOURS_MAX;
	neighbours =
		mmap(NULL, NEIGHBOURS_MAX * sizeof(*neighbours),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < nr_neighbours; i++) {
		if (fork() == 0)
			compute_on(i, &neighbours[i].loops);
	}
}

static unsigned long loops_done(void)
{
	unsigned long loops = 0;

	for (int i = 0; i < nr_neighbours; i++)
		loops +=
			__atomic_load_n(&neighbours[i].loops, __ATOMIC_RELAXED);
	return loops;
}

struct timing begin_timing(void)
{
	return (struct timing){ .start = seconds_now(), .loops = loops_done() };
}

void end_timing(struct times *times, const struct timing *timing)
{
	double seconds = seconds_now() - timing->start;
	unsigned long loops = loops_done() - timing->loops;

	times->seconds[times->nr] = seconds;
	times->loops[times->nr++] = loops ? seconds * 1e6 / (double)loops : 0;
}

static void tell_numbers(const char *name, const char *what,
			 const double *numbers, int nr)
{
	char line[400];
	int at = 0;

	for (int i = 0; i < nr; i++)
		at += snprintf(line + at, sizeof(line) - (size_t)at, " %.6f",
			       numbers[i]);
	note_line("time %s%s:%s", name, what, at ? line : "");
}

void tell_times(const struct times *times)
{
	tell_numbers(times->name, "", times->seconds, times->nr);
	if (nr_neighbours)
		tell_numbers(times->name, ", neighbours", times->loops,
			     times->nr);
}

/*
 * Is this client asked for?  series.clients=WORD,WORD are the first letters of names, with
 * "_" for a blank: "fallocate,munmap_4".  Without that all are.
 */
bool measure_wanted(const char *name)
{
	char words[400], *word, *rest = words;
	size_t at;

	option_text("clients", words, sizeof(words));
	if (!words[0])
		return true;
	while ((word = strsep(&rest, ","))) {
		for (at = 0; word[at]; at++)
			if (word[at] != name[at] &&
			    (word[at] != '_' || name[at] != ' '))
				break;
		if (at && !word[at])
			return true;
	}
	return false;
}

static void measure_pool(const char *name, long from, long to, int rounds)
{
	struct times times = { .name = name };
	struct timing timing;

	while (measure_wanted(name) && times.nr < rounds) {
		pool_set(&pool_2m, from);
		timing = begin_timing();
		pool_set(&pool_2m, to);
		end_timing(&times, &timing);
	}
	tell_times(&times);
}

static void measure_file(const char *name, const struct pool *pool, long pages,
			 int rounds)
{
	struct times times = { .name = name };
	struct timing timing;
	int fd;

	while (measure_wanted(name) && times.nr < rounds) {
		fd = memfd_create("bench", MFD_HUGETLB | pool->flag);
		timing = begin_timing();
		if (fallocate(fd, 0, 0, pages * (off_t)pool->size))
			break;
		end_timing(&times, &timing);
		close(fd);
	}
	tell_times(&times);
}

/* What is not huge takes as long as small pages do, and must not pass for huge. */
static void tell_if_small(const char *name, size_t len, int advice)
{
	long kib = (long)(len / 1024);
	long huge_kib;

	if (advice != MADV_HUGEPAGE)
		return;
	huge_kib = number_in("/proc/self/smaps_rollup", "AnonHugePages:");
	if (huge_kib < kib)
		note_line("%s: %ld of %ld KiB are in huge pages", name,
			  huge_kib, kib);
}

static void time_munmap(struct times *times, size_t len, int advice)
{
	char *addr = map_memory(len, advice);
	struct timing timing;

	populate_memory(addr, len);
	tell_if_small(times->name, len, advice);
	timing = begin_timing();
	munmap(addr, len);
	end_timing(times, &timing);
}

/* Until its parent knows of its end, when its memory is free. */
static void time_exit(struct times *times, size_t len, int advice)
{
	struct timing *timing = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();

	if (pid == 0) {
		populate_memory(map_memory(len, advice), len);
		tell_if_small(times->name, len, advice);
		*timing = begin_timing();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	end_timing(times, timing);
	munmap(timing, PAGE);
}

/* What two processes share that begin at once. */
struct halves {
	unsigned nr_ready;
	struct timing start; /* of the one that was ready last */
	double end; /* of the one that unmapped last */
};

static void give_half_back(struct halves *halves, size_t len, int advice,
			   bool unmaps)
{
	char *addr = map_memory(len / 2, advice);

	populate_memory(addr, len / 2);
	if (__atomic_add_fetch(&halves->nr_ready, 1, __ATOMIC_SEQ_CST) == 2) {
		halves->start = begin_timing();
		__atomic_add_fetch(&halves->nr_ready, 1, __ATOMIC_SEQ_CST);
	}
	while (__atomic_load_n(&halves->nr_ready, __ATOMIC_SEQ_CST) < 3)
		sched_yield();
	if (unmaps && !munmap(addr, len / 2) &&
	    __atomic_add_fetch(&halves->nr_ready, 1, __ATOMIC_SEQ_CST) == 5)
		halves->end = seconds_now();
	_exit(0);
}

/*
 * What this machine allows: the unpatched kernel gives the same memory back for two
 * processes, each of which has half of it and a CPU of its own.
 */
static void time_halves(struct times *times, size_t len, int advice,
			bool unmaps)
{
	struct halves *halves = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[2];

	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			give_half_back(halves, len, advice, unmaps);
	}
	for (int i = 0; i < 2; i++)
		waitpid(pids[i], NULL, 0);
	end_timing(times, &halves->start);
	if (unmaps)
		times->seconds[times->nr - 1] =
			halves->end - halves->start.start;
	munmap(halves, PAGE);
}

static void time_exit_halves(struct times *times, size_t len, int advice)
{
	time_halves(times, len, advice, false);
}

static void time_munmap_halves(struct times *times, size_t len, int advice)
{
	time_halves(times, len, advice, true);
}

static void measure_unmap(size_t len, int rounds)
{
	static const struct {
		const char *name;
		void (*run)(struct times *times, size_t len, int advice);
		int advice;
	} cases[] = {
		{ "exit 4 KiB", time_exit, MADV_NOHUGEPAGE },
		{ "exit 4 KiB, halves", time_exit_halves, MADV_NOHUGEPAGE },
		{ "exit 2 MiB", time_exit, MADV_HUGEPAGE },
		{ "munmap 4 KiB", time_munmap, MADV_NOHUGEPAGE },
		{ "munmap 4 KiB, halves", time_munmap_halves, MADV_NOHUGEPAGE },
		{ "munmap 2 MiB", time_munmap, MADV_HUGEPAGE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct times times = { .name = cases[i].name };

		while (measure_wanted(times.name) && times.nr < rounds)
			cases[i].run(&times, len, cases[i].advice);
		tell_times(&times);
	}
}

void measure_clients(void)
{
	long pages = read_option("pages", 200);
	int rounds = (int)read_option("rounds", 5);

	if (rounds > ROUNDS_MAX)
		rounds = ROUNDS_MAX;
	start_neighbours((int)read_option("neighbours", 0));
	if (read_option("vfio", 0)) {
		measure_vfio(rounds);
		return;
	}
	if (read_option("device", 0)) {
		measure_device(rounds);
		return;
	}
	pool_set(&pool_1g, 1);
	measure_pool("nr_hugepages", 0, pages, rounds);
	measure_pool("nr_hugepages, fewer", pages, 0, rounds);
	pool_set(&pool_2m, pages);
	measure_file("fallocate 2 MiB", &pool_2m, pages, rounds);
	/* What a job costs that is not worth a helper. */
	measure_file("fallocate one page", &pool_2m, 1, rounds);
	if (pool_number(&pool_1g, -1, "free_hugepages") > 0)
		measure_file("fallocate 1 GiB", &pool_1g, 1, rounds);
	pool_set(&pool_2m, 0);
	measure_unmap((size_t)read_option("unmap_mib", 400) * MIB, rounds);
	note_line("helpers that worked in jobs: %ld", helpers_worked());
	note_line("jobs that found the host to lack CPUs: %ld",
		  hosts_found_short());
}
