// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many processes at once, and what the caps across processes make of them:
 *
 *   many    N processes that populate memory at once, against the same jobs one
 *           after the other, each with all that it can get
 *   equal   N equal jobs that begin at once: how far apart they end
 *   share   a second job beside one that has all helpers: when it gets its own,
 *           where chunks wait and where they compute
 *
 * Owns the processes and the figures.  Does not judge: the figures to reach are
 * in bench/notebook/2026-11.md.  Behaves badly where memory is short: that of all of
 * them is there at once.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ktask/ops.h>

#define PROCESSES_MAX 1000
#define ROUNDS_MAX 1000
#define MIB (1ull << 20)
/* What a second job waits for its first helper. */
#define PATIENCE_NS 2000000000ull

static unsigned nr_processes = 200, nr_equal = 4, rounds = 5;
static uint64_t mib_each = 16, equal_ms = 1000;

static struct {
	uint32_t ready, start;
	uint64_t stop;
	uint64_t first_ns[PROCESSES_MAX]; /* the first piece was done */
	uint64_t end_ns[PROCESSES_MAX];
	uint64_t helper_ns; /* share: the first chunk of a helper */
	int failed;
} * shared;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* CPUs that others kept busy; ours are idle when this is asked. */
static double cpus_busy(double *idle_s)
{
	unsigned long long user, nice, kernel, idle, iowait, irq, softirq;
	FILE *in = fopen("/proc/stat", "re");
	double busy = 0;

	if (in && fscanf(in, "cpu %llu %llu %llu %llu %llu %llu %llu", &user,
			 &nice, &kernel, &idle, &iowait, &irq, &softirq) == 7) {
		busy = (double)(user + nice + kernel + irq + softirq);
		*idle_s =
			(double)(idle + iowait) / (double)sysconf(_SC_CLK_TCK);
	}
	if (in)
		fclose(in);
	return busy / (double)sysconf(_SC_CLK_TCK);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double find_median(double *values, unsigned nr)
{
	qsort(values, nr, sizeof(*values), by_value);
	return nr % 2 ? values[nr / 2]
		      : (values[nr / 2 - 1] + values[nr / 2]) / 2;
}

/* ---- processes ---- */

static void wait_for_start(void)
{
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->start, __ATOMIC_ACQUIRE))
		usleep(200);
}

static pid_t start_process(void (*work)(unsigned self), unsigned self)
{
	pid_t pid = fork();

	if (pid < 0) {
		perror("bench-overload: fork");
		exit(1);
	}
	if (!pid) {
		work(self);
		_exit(0);
	}
	return pid;
}

static void start_all(unsigned nr)
{
	while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) < nr)
		usleep(200);
	__atomic_store_n(&shared->start, 1, __ATOMIC_RELEASE);
}

static void clear_shared(void)
{
	memset(shared, 0, sizeof(*shared));
}

static void end_all(const pid_t *pids, unsigned nr)
{
	int status;

	for (unsigned i = 0; i < nr; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			shared->failed = 1;
	if (shared->failed) {
		fprintf(stderr, "bench-overload: a process failed\n");
		exit(1);
	}
}

/* ---- many ---- */

static int first_piece(const struct ktask_progress *progress, void *arg)
{
	uint64_t *first_ns = arg;

	if (!*first_ns && progress->units_done)
		*first_ns = now_ns();
	return 0;
}

static void *map_memory(void)
{
	void *at = mmap(NULL, mib_each * MIB, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || madvise(at, mib_each * MIB, MADV_NOHUGEPAGE))
		_exit(1);
	return at;
}

static void populate_memory(unsigned self)
{
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = map_memory(),
				      .len = mib_each * MIB };

	opts.progress_func = first_piece;
	opts.progress_arg = &shared->first_ns[self];
	opts.progress_ms = 1;
	wait_for_start();
	if (ktask_op_run(ktask_op_find("populate"), &args, &opts))
		_exit(1);
	shared->end_ns[self] = now_ns();
	if (!shared->first_ns[self])
		shared->first_ns[self] = shared->end_ns[self];
}

/* From the start to the last end, in seconds. */
static double all_at_once(double *first_s, double *last_first_s)
{
	static double first[PROCESSES_MAX];
	pid_t pids[PROCESSES_MAX];
	uint64_t start_ns, end_ns = 0;

	clear_shared();
	for (unsigned i = 0; i < nr_processes; i++)
		pids[i] = start_process(populate_memory, i);
	start_ns = now_ns();
	start_all(nr_processes);
	end_all(pids, nr_processes);
	for (unsigned i = 0; i < nr_processes; i++) {
		if (shared->end_ns[i] > end_ns)
			end_ns = shared->end_ns[i];
		first[i] = (double)(shared->first_ns[i] - start_ns) / 1e9;
	}
	*first_s = find_median(first, nr_processes);
	*last_first_s = first[nr_processes - 1];
	return (double)(end_ns - start_ns) / 1e9;
}

/* The processes are there, as when all begin at once, and are let go one by one. */
static double one_by_one(void)
{
	double sum = 0;
	pid_t pid;

	for (unsigned i = 0; i < nr_processes; i++) {
		uint64_t start_ns;

		clear_shared();
		pid = start_process(populate_memory, i);
		while (!__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE))
			usleep(50);
		start_ns = now_ns();
		start_all(1);
		end_all(&pid, 1);
		sum += (double)(shared->end_ns[i] - start_ns) / 1e9;
	}
	return sum;
}

static void compare_many(void)
{
	static double together[ROUNDS_MAX], serial[ROUNDS_MAX],
		ratio[ROUNDS_MAX], first[ROUNDS_MAX], last[ROUNDS_MAX];

	for (unsigned i = 0; i < rounds; i++) {
		if (i % 2)
			serial[i] = one_by_one();
		together[i] = all_at_once(&first[i], &last[i]);
		if (i % 2 == 0)
			serial[i] = one_by_one();
		ratio[i] = together[i] / serial[i];
	}
	printf("many: %u processes populate %llu MiB each, 4 KiB pages\n",
	       nr_processes, (unsigned long long)mib_each);
	printf("  all at once                      %8.3f s\n",
	       find_median(together, rounds));
	printf("  one after the other              %8.3f s\n",
	       find_median(serial, rounds));
	printf("  at once / one by one, by rounds  %8.3f\n",
	       find_median(ratio, rounds));
	printf("  first piece done, median process %8.3f s\n",
	       find_median(first, rounds));
	printf("  first piece done, last process   %8.3f s\n",
	       find_median(last, rounds));
}

/* ---- equal ---- */

static uint64_t turns_per_us;

static void burn_turns(uint64_t turns)
{
	for (volatile uint64_t i = 0; i < turns; i++)
		;
}

static int burn_chunk(void *start, void *end, void *arg)
{
	burn_turns((uint64_t)((char *)end - (char *)start) * 20 * turns_per_us);
	return 0;
}

static void calibrate_turns(void)
{
	uint64_t start_ns = now_ns();

	burn_turns(20000000);
	turns_per_us = 20000000 * 1000ull / (now_ns() - start_ns);
}

static void burn_all(unsigned self)
{
	DEFINE_KTASK_CTL(ctl, burn_chunk, NULL, 1);

	wait_for_start();
	if (ktask_run(NULL, equal_ms * 50, &ctl))
		_exit(1);
	shared->end_ns[self] = now_ns();
}

static void measure_equal(void)
{
	static double spread[ROUNDS_MAX];

	for (unsigned round = 0; round < rounds; round++) {
		pid_t pids[PROCESSES_MAX];
		double least = 1e9, most = 0;
		uint64_t start_ns;

		clear_shared();
		for (unsigned i = 0; i < nr_equal; i++)
			pids[i] = start_process(burn_all, i);
		start_ns = now_ns();
		start_all(nr_equal);
		end_all(pids, nr_equal);
		for (unsigned i = 0; i < nr_equal; i++) {
			double s = (double)(shared->end_ns[i] - start_ns) / 1e9;

			least = s < least ? s : least;
			most = s > most ? s : most;
		}
		spread[round] = 100 * (most - least) / most;
	}
	printf("equal: %u jobs of %llu ms of computing begin at once\n",
	       nr_equal, (unsigned long long)equal_ms);
	printf("  first to last end, part of all   %8.1f %%\n",
	       find_median(spread, rounds));
	printf("  the worst round                  %8.1f %%\n",
	       spread[rounds - 1]);
}

/* ---- share ---- */

/* Units of 20 us of computing, or of 500 us in which the thread waits, as for a
 * disk: then there are CPUs for helpers, however few CPUs there are. */
static bool units_wait;

/* Until @word is not 0. */
static int work_until(const uint64_t *word, void *start, void *end)
{
	for (char *unit = start; unit < (char *)end; unit++) {
		if (__atomic_load_n(word, __ATOMIC_RELAXED))
			return -ECANCELED;
		if (units_wait)
			usleep(500);
		else
			burn_turns(20 * turns_per_us);
	}
	return 0;
}

static int work_until_told(void *start, void *end, void *arg)
{
	return work_until(&shared->stop, start, end);
}

static void first_job(unsigned self)
{
	DEFINE_KTASK_CTL(ctl, work_until_told, NULL, 1);

	wait_for_start();
	ktask_run(NULL, 1u << 30, &ctl);
}

static int note_helper(void *start, void *end, void *arg)
{
	uint64_t none = 0;

	if (gettid() != getpid())
		__atomic_compare_exchange_n(&shared->helper_ns, &none, now_ns(),
					    0, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	return work_until(&shared->helper_ns, start, end);
}

static void second_job(unsigned self)
{
	DEFINE_KTASK_CTL(ctl, note_helper, NULL, 1);

	/* On a busy machine none may come. */
	ktask_ctl_set_deadline(&ctl, PATIENCE_NS);
	wait_for_start();
	shared->first_ns[1] = now_ns();
	ktask_run(NULL, 1u << 30, &ctl);
}

static void measure_share(bool wait)
{
	static double after_ms[ROUNDS_MAX];
	unsigned nr = rounds * 10 < ROUNDS_MAX ? rounds * 10 : ROUNDS_MAX;

	units_wait = wait;
	for (unsigned i = 0; i < nr; i++) {
		pid_t pids[2];

		clear_shared();
		pids[0] = start_process(first_job, 0);
		start_all(1);
		/* It has its helpers by then; not always the same moment of
		 * whatever is done periodically. */
		usleep(60000 + i % 10 * 3000);
		__atomic_store_n(&shared->start, 0, __ATOMIC_RELEASE);
		pids[1] = start_process(second_job, 1);
		start_all(2);
		waitpid(pids[1], NULL, 0);
		__atomic_store_n(&shared->stop, 1ull, __ATOMIC_RELAXED);
		waitpid(pids[0], NULL, 0);
		if (!shared->helper_ns)
			shared->helper_ns = shared->first_ns[1] + PATIENCE_NS;
		after_ms[i] =
			(double)(shared->helper_ns - shared->first_ns[1]) / 1e6;
	}
	printf("share: a second job beside one that has all helpers; both %s\n",
	       wait ? "wait" : "compute");
	printf("  its first helper begins after    %8.1f ms, median of %u\n",
	       find_median(after_ms, nr), nr);
	printf("  9 of 10 after at most            %8.1f ms\n",
	       after_ms[nr * 9 / 10]);
	printf("  at last after                    %8.1f ms\n",
	       after_ms[nr - 1]);
}

/* ---- the command ---- */

static void print_usage(void)
{
	fprintf(stderr, "usage: bench-overload [--only many|equal|share] "
			"[--processes N] [--mib N] [--equal N] [--ms N] "
			"[--rounds N]\n");
	exit(2);
}

static uint64_t parse_number(const char *text, uint64_t max)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*end || !value || value > max)
		print_usage();
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "only", 1, NULL, 'o' }, { "processes", 1, NULL, 'p' },
		{ "mib", 1, NULL, 'm' },  { "equal", 1, NULL, 'e' },
		{ "ms", 1, NULL, 't' },	  { "rounds", 1, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	const char *only = NULL;
	double busy, idle;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'o':
			only = optarg;
			break;
		case 'p':
			nr_processes =
				(unsigned)parse_number(optarg, PROCESSES_MAX);
			break;
		case 'm':
			mib_each = parse_number(optarg, 1 << 20);
			break;
		case 'e':
			nr_equal =
				(unsigned)parse_number(optarg, PROCESSES_MAX);
			break;
		case 't':
			equal_ms = parse_number(optarg, 100000);
			break;
		case 'r':
			rounds = (unsigned)parse_number(optarg, ROUNDS_MAX);
			break;
		default:
			print_usage();
		}
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		perror("bench-overload: mmap");
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	calibrate_turns();
	busy = cpus_busy(&idle);
	sleep(1);
	printf("%ld CPUs; others keep %.2f of them busy before it begins\n",
	       sysconf(_SC_NPROCESSORS_ONLN), cpus_busy(&idle) - busy);
	if (!only || !strcmp(only, "many"))
		compare_many();
	if (!only || !strcmp(only, "equal"))
		measure_equal();
	if (!only || !strcmp(only, "share")) {
		measure_share(true);
		measure_share(false);
	}
	return 0;
}
