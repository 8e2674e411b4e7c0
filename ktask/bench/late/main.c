/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How late a process ends, or becomes another program, while a helper is in the
 * middle of a chunk and other processes keep all CPUs busy.
 *
 *	bench-late [OTHERS [ROUNDS [NICE]]]
 *
 * Nothing of the library runs in these ends: a signal that kills, _exit() without
 * the shim, execve(), both by another thread than the job's.  The kernel waits
 * until each thread has had a CPU to die on, and a helper is SCHED_IDLE.
 *
 * Each round is three processes in changing order, whose threads compute without
 * end: one thread, a job of a caller and a helper, and two ordinary threads.
 * Measured is from the signal or the call until the parent has waited.
 *
 * The processes beside it run only meanwhile, and end with it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ktask/ktask.h>

#include "bench/common/burners.h"
#include "bench/common/clock.h"
#include "bench/common/stats.h"

#define MAX_ROUNDS 1001
/* Until the processes beside it have all CPUs, and the helper none. */
#define SETTLE_NS 100000000
#define POLL_NS 200000
#define CHUNK_NS 20000
#define PATIENCE_NS 30000000000u

enum end { KILLED, EXITS, EXECS, NR_ENDS };
enum side { ONE, HELPED, TWO, NR_SIDES };

static const char *const end_names[] = { "killed", "_exit", "execve" };
static const char *const side_names[] = { "one thread", "with a helper",
					  "two threads" };

static struct shared {
	uint32_t ready, start;
	uint64_t begin_ns;
} * shared;

static struct burners others = { .nr = 6 };
static unsigned rounds = 15;
static double samples[NR_ENDS][NR_SIDES][MAX_ROUNDS];

static bool is_set(uint32_t *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set_flag(uint32_t *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

/* ---- the process that ends ---- */

static void *compute_forever(void *arg)
{
	set_flag(&shared->ready);
	for (;;)
		;
	return arg;
}

static int compute_in_chunk(void *start, void *end, void *arg)
{
	uint64_t end_ns = clock_ns() + CHUNK_NS;

	if (gettid() != getpid() || is_set(&shared->ready))
		compute_forever(NULL);
	/* The caller's are short until a helper has one. */
	while (clock_ns() < end_ns)
		;
	return 0;
}

static void *end_when_told(void *arg)
{
	while (!is_set(&shared->start))
		clock_pause_ns(POLL_NS);
	shared->begin_ns = clock_ns();
	if (*(enum end *)arg == EXITS)
		_exit(0);
	execl("/bin/true", "true", (char *)NULL);
	abort();
}

static void run_child(enum end end, enum side side)
{
	DEFINE_KTASK_CTL(ctl, compute_in_chunk, NULL, 1);
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The thread that ends the process gets a CPU as soon as it is told. */
	if (end != KILLED && pthread_create(&thread, NULL, end_when_told, &end))
		abort();
	if (side == TWO && pthread_create(&thread, NULL, compute_forever, NULL))
		abort();
	if (side == HELPED)
		ktask_run(NULL, 1 << 20, &ctl);
	compute_forever(NULL);
}

/* ---- rounds ---- */

/* Seconds; less than 0: no helper came. */
static double time_end(enum end end, enum side side)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;
	pid_t child;

	*shared = (struct shared){ 0 };
	child = fork();
	if (!child)
		run_child(end, side);
	while (!is_set(&shared->ready) && clock_ns() < until_ns)
		clock_pause_ns(POLL_NS);
	if (!is_set(&shared->ready)) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		return -1;
	}
	burners_signal(&others, SIGCONT);
	clock_pause_ns(SETTLE_NS);
	set_flag(&shared->start);
	if (end == KILLED) {
		shared->begin_ns = clock_ns();
		kill(child, SIGKILL);
	}
	waitpid(child, NULL, 0);
	until_ns = clock_ns();
	burners_signal(&others, SIGSTOP);
	return (double)(until_ns - shared->begin_ns) / 1e9;
}

static bool run_round(unsigned round)
{
	for (unsigned i = 0; i < NR_ENDS * NR_SIDES; i++) {
		unsigned turn = (i + round) % (NR_ENDS * NR_SIDES);
		enum end end = turn / NR_SIDES;
		enum side side = turn % NR_SIDES;
		double seconds = time_end(end, side);

		if (seconds < 0)
			return false;
		samples[end][side][round] = seconds;
	}
	return true;
}

static void report_samples(void)
{
	printf("ms until it is gone, beside %u busy processes of nice %d, "
	       "%u rounds: least, median, most\n",
	       others.nr, others.nice, rounds);
	for (unsigned end = 0; end < NR_ENDS; end++) {
		for (unsigned side = 0; side < NR_SIDES; side++) {
			double *of = samples[end][side];
			struct stats stats = stats_of(of, rounds);

			printf("  %-7s %-14s %8.2f %8.2f %8.2f\n",
			       end_names[end], side_names[side], 1e3 * of[0],
			       1e3 * stats.median, 1e3 * of[rounds - 1]);
		}
	}
}

int main(int argc, char **argv)
{
	bool done = true;

	if (argc > 1)
		others.nr = (unsigned)atoi(argv[1]);
	if (argc > 2)
		rounds = (unsigned)atoi(argv[2]);
	if (argc > 3)
		others.nice = atoi(argv[3]);
	if (argc > 4 || others.nr > BURNERS_MAX || !rounds ||
	    rounds > MAX_ROUNDS) {
		fputs("usage: bench-late [OTHERS [ROUNDS [NICE]]]\n", stderr);
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 2;
	burners_start(&others);
	burners_signal(&others, SIGSTOP);
	for (unsigned round = 0; done && round < rounds; round++)
		done = run_round(round);
	burners_stop(&others);
	if (!done) {
		fputs("bench-late: no helper came\n", stderr);
		return 2;
	}
	report_samples();
	return 0;
}
