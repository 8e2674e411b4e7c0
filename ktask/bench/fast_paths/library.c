/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The library's fast paths: what a job takes in which next to nothing is done.
 *
 *	rendezvous	two chunks, neither of which ends before both have begun
 *	any		two empty chunks, whoever does them
 *	small		a job that is too small to be split, more than a call
 *	steps		instructions of that job, which no noise changes
 *
 * Prints a line for each, its name and the median in ns.  It is compiled with the
 * library of this tree and with an older one (ktask/bench/fast_paths/compare), and uses
 * only what both have.
 *
 * Behaves badly beside other work: a rendezvous waits for the second thread's CPU.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include <ktask/ktask.h>

#include "bench/common/clock.h"
#include "bench/common/single_steps.h"
#include "bench/common/stats.h"

#define WARM_JOBS 200
#define JOBS 4000
#define SETTLE_NS 20000000
/* A rendezvous that takes longer did not happen: one thread got both chunks. */
#define MISSED_NS 20000000
#define SMALL_JOBS 2000
#define SMALL_ROUNDS 301
#define STEPPED 200 /* small jobs that are run step by step */

static atomic_uint nr_arrived;

static int meet_helper(void *start, void *end, void *arg)
{
	uint64_t start_ns = clock_ns();

	atomic_fetch_add(&nr_arrived, (unsigned)((char *)end - (char *)start));
	while (atomic_load(&nr_arrived) < 2)
		if (clock_ns() - start_ns > MISSED_NS)
			break;
	return 0;
}

static int do_nothing(void *start, void *end, void *arg)
{
	return 0;
}

static double two_thread_job_ns(ktask_thread_func func)
{
	DEFINE_KTASK_CTL(ctl, func, NULL, 1);
	uint64_t start_ns;

	ktask_ctl_set_max_threads(&ctl, 2);
	atomic_store(&nr_arrived, 0);
	start_ns = clock_ns();
	ktask_run(NULL, 2, &ctl);
	return (double)(clock_ns() - start_ns);
}

static void two_thread_jobs(const char *name, ktask_thread_func func)
{
	static double ns[JOBS];

	clock_pause_ns(SETTLE_NS);
	for (int i = 0; i < WARM_JOBS; i++)
		two_thread_job_ns(func);
	for (int i = 0; i < JOBS; i++)
		ns[i] = two_thread_job_ns(func);
	printf("%s %.1f\n", name, stats_of(ns, JOBS).median);
}

/* Volatile: the compiler must not see through the call. */
static volatile ktask_thread_func volatile_func = do_nothing;

static void small_jobs(unsigned nr, bool through_ktask)
{
	DEFINE_KTASK_CTL(ctl, do_nothing, NULL, 64);

	for (unsigned i = 0; i < nr; i++) {
		if (through_ktask)
			ktask_run(&ctl, 64, &ctl);
		else
			volatile_func(&ctl, &ctl + 1, NULL);
	}
}

static double small_round_ns(bool through_ktask)
{
	uint64_t start_ns = clock_ns();

	small_jobs(SMALL_JOBS, through_ktask);
	return (double)(clock_ns() - start_ns) / SMALL_JOBS;
}

static double small_job_ns(bool through_ktask)
{
	double ns[SMALL_ROUNDS];

	for (int i = 0; i < SMALL_ROUNDS; i++)
		ns[i] = small_round_ns(through_ktask);
	return stats_of(ns, SMALL_ROUNDS).median;
}

static void step_small_jobs(void *arg)
{
	const unsigned *nr = arg;

	raise(SIGSTOP);
	small_jobs(*nr, true);
	raise(SIGSTOP);
}

static double small_job_steps(void)
{
	unsigned some = STEPPED + 1, one = 1;

	return (double)(single_steps(step_small_jobs, &some) -
			single_steps(step_small_jobs, &one)) /
	       STEPPED;
}

int main(void)
{
	two_thread_jobs("rendezvous", meet_helper);
	two_thread_jobs("any", do_nothing);
	printf("small %.2f\n", small_job_ns(true) - small_job_ns(false));
	printf("steps %.1f\n", small_job_steps());
	return 0;
}
