/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A job, and the end of its process, beside processes that keep all CPUs busy.
 *
 *	bench-busy [OTHERS [NICE|idle [ROUNDS [MIB [SECONDS [LEAST]]]]]]
 *
 * Each round is three processes, one after the other, in changing order.  They make
 * MIB of 4 KiB pages present by one madvise(), by one for each 2 MiB, and by
 * ktask_populate().  Then each is killed.  Measured are the job, and from the signal
 * until the parent has waited.  The rule: with ktask the job takes at most 1.05 of
 * plain and one chunk, in time by the mean, in CPU time by the median.  Exit status 1
 * if not.  The chunk is the largest that a job had, and takes its part of the plain
 * time.  The worst excess is that of one round over the same bound of its own plain
 * job.  After SECONDS no round begins but the first LEAST (1).
 *
 * Others get whole turns: medians jump by one (13 ms beside 6 processes on 2 CPUs), and
 * a call that returns often gives its CPU up sooner than one that does not, whoever
 * makes it.  Hence the second side, and hence the job's time is also told in parts, by
 * the thread that calls: CPU time, waiting for a CPU, and sleeping, which is what the
 * library adds.
 *
 * Beside processes of a higher priority a job takes seconds, so there are few rounds,
 * and one that met something else decides their mean.  There the time is judged by the
 * median of what each round took, as a part of its own plain job.
 *
 * The processes beside it end with it, also when it is killed.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ktask/ops.h>

#include "bench/common/burners.h"
#include "bench/common/clock.h"
#include "bench/common/stats.h"

#define MAX_ROUNDS 1001
#define WARM_NS 200000000
#define SETTLE_NS 20000000

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static struct burners others = { .nr = 6 };
static unsigned rounds = 31;
static size_t bytes = (size_t)64 << 20;
static uint64_t limit_ns = UINT64_MAX;
static unsigned least_rounds = 1;

/* Seconds; of the thread that calls. */
struct job_time {
	double total, cpu, queued, asleep;
	double chunk; /* the largest, as a part of the job */
};

struct side {
	const char *name;
	double job[MAX_ROUNDS], end[MAX_ROUNDS]; /* seconds */
	double cpu[MAX_ROUNDS], queued[MAX_ROUNDS], asleep[MAX_ROUNDS];
	double chunk[MAX_ROUNDS]; /* part of the job */
};

static double seconds_since(uint64_t start_ns)
{
	return (double)(clock_ns() - start_ns) / 1e9;
}

static double thread_cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* How long this thread waited for a CPU so far; 0 where the kernel does not
 * count that. */
static double thread_queued_seconds(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	double queued_ns = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*s %lf", &queued_ns) != 1)
		queued_ns = 0;
	fclose(file);
	return queued_ns / 1e9;
}

/* How a job is done. */
enum how { PLAIN, PIECES, KTASK, NR_HOW };

#define PIECE_BYTES ((size_t)2 << 20)

static int populate_by_pieces(char *base)
{
	int error = 0;

	for (size_t at = 0; at < bytes && !error; at += PIECE_BYTES)
		error = madvise(base + at,
				bytes - at < PIECE_BYTES ? bytes - at
							 : PIECE_BYTES,
				MADV_POPULATE_WRITE);
	return error;
}

static int populate_by_ktask(char *base, struct job_time *time)
{
	struct ktask_result result = KTASK_RESULT_INIT;
	struct ktask_opts opts = KTASK_OPTS_INIT;
	struct ktask_op_args args = { .struct_size = sizeof(args),
				      .addr = base,
				      .len = bytes };
	int error;

	opts.result = &result;
	error = ktask_op_run(ktask_op_find("populate"), &args, &opts);
	time->chunk = (double)result.largest_chunk / (double)bytes;
	return error;
}

static int do_job(enum how how, char *base, struct job_time *time)
{
	if (how == KTASK)
		return populate_by_ktask(base, time);
	if (how == PIECES)
		return populate_by_pieces(base);
	return madvise(base, bytes, MADV_POPULATE_WRITE);
}

static bool time_populate(enum how how, struct job_time *time)
{
	char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double cpu, queued;
	uint64_t start_ns;
	int error;

	if (base == MAP_FAILED)
		return false;
	queued = thread_queued_seconds();
	cpu = thread_cpu_seconds();
	start_ns = clock_ns();
	madvise(base, bytes, MADV_NOHUGEPAGE);
	time->chunk = 0;
	error = do_job(how, base, time);
	time->total = seconds_since(start_ns);
	time->cpu = thread_cpu_seconds() - cpu;
	time->queued = thread_queued_seconds() - queued;
	time->asleep = time->total - time->cpu - time->queued;
	return !error;
}

/* Tells how long its job took, and waits for its end. */
static void be_child(int fd, enum how how)
{
	struct job_time time;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (time_populate(how, &time) &&
	    write(fd, &time, sizeof(time)) == sizeof(time))
		pause();
	_exit(1);
}

/* Return: false if the child could not do its job. */
static bool run_once(enum how how, struct job_time *job, double *end)
{
	uint64_t start_ns;
	bool done;
	int fds[2];
	pid_t child;

	if (pipe(fds))
		return false;
	child = fork();
	if (!child)
		be_child(fds[1], how);
	close(fds[1]);
	done = child > 0 && read(fds[0], job, sizeof(*job)) == sizeof(*job);
	close(fds[0]);
	clock_pause_ns(SETTLE_NS);
	start_ns = clock_ns();
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	*end = seconds_since(start_ns);
	return done;
}

static double find_largest(const double *samples, unsigned nr)
{
	double most = 0;

	for (unsigned i = 0; i < nr; i++)
		most = samples[i] > most ? samples[i] : most;
	return most;
}

static void print_row(const char *what, const char *name, double *samples)
{
	double most = find_largest(samples, rounds);

	printf("%-5s %-6s mean %8.2f ms, median %8.2f, longest %8.2f\n", what,
	       name, 1e3 * stats_of(samples, rounds).mean,
	       1e3 * stats_of(samples, rounds).median, 1e3 * most);
}

static void print_parts(struct side *side)
{
	double asleep = stats_of(side->asleep, rounds).median;

	printf("job   %-6s of these: CPU %.2f ms, waiting for one %.2f, asleep "
	       "%.2f (longest %.2f)\n",
	       side->name, 1e3 * stats_of(side->cpu, rounds).median,
	       1e3 * stats_of(side->queued, rounds).median, 1e3 * asleep,
	       1e3 * find_largest(side->asleep, rounds));
}

/* @ratio, @chunk: the largest, as parts of a plain job. */
static bool check_bound(const char *what, const char *how, double ratio,
			double chunk)
{
	bool good = ratio <= 1.05 + chunk;

	printf("%s: %.3f of plain by the %s of %u rounds, at most 1.05 and a chunk "
	       "of %.3f: %s\n",
	       what, ratio, how, rounds, chunk,
	       good ? "holds" : "does NOT hold");
	return good;
}

static bool judges_by_median(void)
{
	return !others.idle && others.nice < 0;
}

/* Before anything sorts the samples. */
static double time_ratio(const struct side *plain, const struct side *ktask)
{
	double sum_plain = 0, sum_ktask = 0;

	for (unsigned i = 0; i < rounds; i++) {
		sum_plain += plain->job[i];
		sum_ktask += ktask->job[i];
	}
	return judges_by_median() ? median_ratio(ktask->job, plain->job, rounds)
				  : sum_ktask / sum_plain;
}

/* Seconds; before anything sorts the samples.  Less than 0: no round was over its bound. */
static double worst_excess(const struct side *plain, const struct side *ktask)
{
	double worst = -1e9, excess;

	for (unsigned i = 0; i < rounds; i++) {
		excess = ktask->job[i] -
			 (1.05 + ktask->chunk[i]) * plain->job[i];
		worst = excess > worst ? excess : worst;
	}
	return worst;
}

static void print_load(void)
{
	printf("%u rounds of %zu MiB beside %u busy processes, ", rounds,
	       bytes >> 20, others.nr);
	if (others.idle)
		printf("SCHED_IDLE\n");
	else
		printf("nice %d\n", others.nice);
}

static int report_sides(struct side *sides)
{
	struct side *plain = &sides[PLAIN], *ktask = &sides[KTASK];
	double chunk = find_largest(ktask->chunk, rounds);
	double excess = worst_excess(plain, ktask);
	double ratio = time_ratio(plain, ktask);
	double cpu, mean;
	bool good;

	print_load();
	for (int how = 0; how < NR_HOW; how++) {
		print_row("job", sides[how].name, sides[how].job);
		print_parts(&sides[how]);
		print_row("end", sides[how].name, sides[how].end);
	}
	mean = stats_of(plain->job, rounds).mean;
	cpu = stats_of(ktask->cpu, rounds).median /
	      stats_of(plain->cpu, rounds).median;
	good = check_bound("CPU time", "median", cpu, chunk);
	good &= check_bound("time", judges_by_median() ? "median" : "mean",
			    ratio, chunk);
	printf("a chunk: at most %.2f MiB, %.2f ms of plain; worst round: %.2f ms "
	       "%s its bound\n",
	       chunk * (double)(bytes >> 20), 1e3 * chunk * mean,
	       1e3 * (excess < 0 ? -excess : excess),
	       excess < 0 ? "within" : "over");
	printf("of the pieces: %.3f of plain\n",
	       stats_of(sides[PIECES].job, rounds).mean / mean);
	return !good;
}

static bool run_round(struct side *side, unsigned round, enum how how)
{
	struct job_time time;

	if (!run_once(how, &time, &side->end[round]))
		return false;
	side->job[round] = time.total;
	side->cpu[round] = time.cpu;
	side->queued[round] = time.queued;
	side->asleep[round] = time.asleep;
	side->chunk[round] = time.chunk;
	return true;
}

static bool run_rounds(struct side *sides)
{
	uint64_t start_ns = clock_ns();

	for (unsigned i = 0; i < rounds; i++) {
		if (i >= least_rounds && clock_ns() - start_ns > limit_ns) {
			rounds = i;
			break;
		}
		for (unsigned k = 0; k < NR_HOW; k++) {
			enum how how = (enum how)((i + k) % NR_HOW);

			if (!run_round(&sides[how], i, how))
				return false;
		}
	}
	return true;
}

static bool read_arguments(int argc, char **argv)
{
	if (argc > 1)
		others.nr = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		others.idle = !strcmp(argv[2], "idle");
	if (argc > 2 && !others.idle)
		others.nice = (int)strtol(argv[2], NULL, 10);
	if (argc > 3)
		rounds = (unsigned)strtoul(argv[3], NULL, 10);
	if (argc > 4)
		bytes = strtoul(argv[4], NULL, 10) << 20;
	if (argc > 5)
		limit_ns = strtoul(argv[5], NULL, 10) * 1000000000u;
	if (argc > 6)
		least_rounds = (unsigned)strtoul(argv[6], NULL, 10);
	return argc < 8 && least_rounds && others.nr <= BURNERS_MAX && rounds &&
	       rounds <= MAX_ROUNDS && bytes;
}

int main(int argc, char **argv)
{
	static struct side sides[NR_HOW] = { { .name = "plain" },
					     { .name = "pieces" },
					     { .name = "ktask" } };
	bool done;

	if (!read_arguments(argc, argv)) {
		fputs("usage: bench-busy [OTHERS [NICE|idle [ROUNDS [MIB "
		      "[SECONDS [LEAST]]]]]]\n",
		      stderr);
		return 2;
	}
	burners_start(&others);
	clock_pause_ns(WARM_NS);
	done = run_rounds(sides);
	burners_stop(&others);
	if (!done) {
		fputs("bench-busy: a process did not get its memory\n", stderr);
		return 2;
	}
	return report_sides(sides);
}
