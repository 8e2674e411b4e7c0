/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What claiming a chunk costs with 1 to 16 threads on one range: instructions,
 * and claims that have to be tried again because another thread was faster.
 *
 * Counted, not timed: threads of a guest are threads of a machine that may have
 * fewer CPUs.  Instructions by running a child step by step.  Prints a line for
 * each count of threads; threads are bound to CPUs of their own where there are
 * as many.
 *
 * Behaves badly where processes may not be traced: the instructions are 0 then.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/common/single_steps.h"
#include "core/claim.h"
#include "core/job.h"

#define THREADS_MAX 16
#define STEPPED 200 /* claims that are run step by step */
#define CLAIMS 200000 /* of chunks in which nothing is done */
#define WORK_CLAIMS 20000 /* of chunks with work, which are shorter than real */
#define WORK_NS 20000

__thread uint64_t claim_retries;

/* ---- the host of core/ ---- */

uint64_t kt_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

unsigned kt_node_distance(int a, int b)
{
	return a == b ? 10 : 20;
}

void kt_iter_lock(kt_iter_lock_t *lock)
{
	abort();
}

void kt_iter_unlock(kt_iter_lock_t *lock)
{
	abort();
}

static int no_work(void *start, void *end, void *arg)
{
	return 0;
}

static struct kt_range range;

/* Chunks of one unit: the claims are known beforehand. */
static void begin_job(struct kt_job *job, uint64_t claims, unsigned threads)
{
	*job = (struct kt_job){ .func = no_work,
				.ranges = &range,
				.nr_ranges = 1 };
	job->split.min_chunk = 1;
	job->split.align = 1;
	job->split.target_ns = 1;
	range.start = (void *)1;
	range.units = claims;
	range.node = KT_NO_NODE;
	kt_job_begin(job);
	job->threads = threads;
}

/* ---- instructions ---- */

/* What a child does that is run step by step. */
struct stepped {
	unsigned claims, threads;
};

static void claim_some(void *arg)
{
	const struct stepped *stepped = arg;
	struct kt_worker worker = { .tick = NULL };
	struct kt_chunk chunk;
	struct kt_job job;

	begin_job(&job, 1 << 20, stepped->threads);
	kt_worker_begin(&worker, &job, KT_NO_NODE, 0);
	raise(SIGSTOP);
	for (unsigned i = 0; i < stepped->claims; i++)
		kt_claim(&job, &worker, &chunk);
	raise(SIGSTOP);
}

static double claim_instructions(unsigned threads)
{
	struct stepped some = { STEPPED, threads }, none = { 0, threads };

	return (double)(single_steps(claim_some, &some) -
			single_steps(claim_some, &none)) /
	       STEPPED;
}

/* ---- contention ---- */

static struct contest {
	struct kt_job job;
	uint64_t work_ns;
	pthread_barrier_t barrier;
	uint64_t claims[THREADS_MAX];
	uint64_t retries[THREADS_MAX];
} contest;

static void bind_thread(unsigned index)
{
	unsigned nr = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(index % nr, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

static void burn_ns(uint64_t ns)
{
	uint64_t until_ns = kt_now_ns() + ns;

	while (ns && kt_now_ns() < until_ns)
		;
}

static void *run_contender(void *arg)
{
	unsigned index = (unsigned)(uintptr_t)arg;
	struct kt_worker worker = { .tick = NULL };
	struct kt_chunk chunk;

	bind_thread(index);
	kt_worker_begin(&worker, &contest.job, KT_NO_NODE, index);
	claim_retries = 0;
	pthread_barrier_wait(&contest.barrier);
	while (kt_claim(&contest.job, &worker, &chunk)) {
		contest.claims[index]++;
		burn_ns(contest.work_ns);
	}
	contest.retries[index] = claim_retries;
	return NULL;
}

/* Retries for each claim. */
static double measure_retries(unsigned threads, uint64_t claims,
			      uint64_t work_ns)
{
	pthread_t ids[THREADS_MAX];
	uint64_t retries = 0, done = 0;

	contest = (struct contest){ .work_ns = work_ns };
	begin_job(&contest.job, claims, threads);
	pthread_barrier_init(&contest.barrier, NULL, threads);
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, run_contender,
				   (void *)(uintptr_t)i))
			abort();
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		retries += contest.retries[i];
		done += contest.claims[i];
	}
	pthread_barrier_destroy(&contest.barrier);
	return done == claims ? (double)retries / (double)done : -1;
}

int main(void)
{
	printf("claiming a chunk on %ld CPUs: threads, instructions, retries "
	       "for "
	       "each claim with %u us of work in a chunk, with none\n",
	       sysconf(_SC_NPROCESSORS_ONLN), WORK_NS / 1000);
	for (unsigned threads = 1; threads <= THREADS_MAX; threads *= 2)
		printf("%2u %5.1f %8.5f %8.5f\n", threads,
		       claim_instructions(threads),
		       measure_retries(threads, WORK_CLAIMS, WORK_NS),
		       measure_retries(threads, CLAIMS, 0));
	return 0;
}
